/**
 * Connections to one database, whichever it is: as many as are allowed, waited for as long as is allowed, and none
 * handed out that is known to be dead. The drivers' own pools wait without end, or in a queue without one.
 */
import type { QueryResult } from 'kysely'
import { inTime } from '../structure/in-time.ts'

export interface Connection {
  /** Rejects with what the driver says. */
  query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>>
  /** The driver has seen it end. */
  isDead(): boolean
  /** At once, whatever is under way. */
  destroy(): void
}

export interface PoolTerms {
  readonly maxActive: number
  /** Milliseconds until somebody who waits is refused; 0: nobody waits. */
  readonly maxWaitMs: number
  readonly testOnBorrow: boolean
  readonly validationIntervalMs: number
  readonly validationQuery: string
  /** Milliseconds that a connection may take to open. */
  readonly connectMs: number
  /** Milliseconds that a statement may take; the connection is given up then. */
  readonly statementMs: number
}

/** Nothing was sent to the database, or no answer came in time. */
export class NoConnection extends Error {
  override readonly name = 'NoConnection'
}

/** Requests that wait for a connection; the next one is refused at once. */
const WAITING_MAX = 1000
/** Milliseconds: connections that nobody has used for so long are closed. */
const IDLE_MS = 300_000

interface Waiter {
  readonly wake: (closed: boolean) => void
}

export class PooledConnection {
  readonly #connection: Connection
  readonly #statementMs: number
  testedMs: number
  usedMs: number
  #isGivenUp = false

  constructor(connection: Connection, statementMs: number) {
    this.#connection = connection
    this.#statementMs = statementMs
    this.testedMs = performance.now()
    this.usedMs = this.testedMs
  }

  get isGood(): boolean {
    return !this.#isGivenUp && !this.#connection.isDead()
  }

  /** Rejects with NoConnection after `statementMs`, and is no good from then on. */
  async query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
    return inTime(this.#connection.query(sql, parameters), this.#statementMs, () => {
      this.destroy()
      return new NoConnection(`no answer to a statement within ${this.#statementMs} ms`)
    })
  }

  destroy(): void {
    if (this.#isGivenUp) return
    this.#isGivenUp = true
    this.#connection.destroy()
  }
}

export class ConnectionPool {
  readonly #open: () => Promise<Connection>
  readonly #terms: PoolTerms
  /** Last used last. */
  readonly #idle: PooledConnection[] = []
  readonly #waiting: Waiter[] = []
  readonly #sweeper: NodeJS.Timeout
  #lent = 0
  #isClosed = false

  constructor(open: () => Promise<Connection>, terms: PoolTerms) {
    this.#open = open
    this.#terms = terms
    this.#sweeper = setInterval(() => this.#sweep(), IDLE_MS / 4).unref()
  }

  /** Throws NoConnection, or what the driver says of a connection that could not be opened. */
  async borrow(): Promise<PooledConnection> {
    await this.#turn()
    try {
      return (await this.#tested()) ?? (await this.#opened())
    } catch (error) {
      this.#pass()
      throw error
    }
  }

  giveBack(connection: PooledConnection): void {
    connection.usedMs = performance.now()
    if (!connection.isGood) this.#suspect()
    if (this.#isClosed || !connection.isGood) connection.destroy()
    else this.#idle.push(connection)
    this.#pass()
  }

  /** Where one has ended, a server that was restarted may have ended all: they are tested, or opened anew. */
  #suspect(): void {
    if (this.#terms.testOnBorrow) for (const idle of this.#idle) idle.testedMs = Number.NEGATIVE_INFINITY
    else for (const idle of this.#idle.splice(0)) idle.destroy()
  }

  /** What is lent out is closed when it comes back. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    for (const connection of this.#idle.splice(0)) connection.destroy()
    for (const { wake } of this.#waiting.splice(0)) wake(true)
  }

  async #turn(): Promise<void> {
    if (this.#isClosed) throw new NoConnection('closed')
    if (this.#lent < this.#terms.maxActive) {
      this.#lent++
      return
    }
    if (this.#waiting.length >= WAITING_MAX) throw new NoConnection(`${WAITING_MAX} wait for a connection already`)
    await this.#wait()
  }

  #wait(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
      reject(new NoConnection(`no connection became free within ${this.#terms.maxWaitMs} ms`))
    }, this.#terms.maxWaitMs)
    const waiter = {
      wake: (closed: boolean) => {
        clearTimeout(timer)
        if (closed) reject(new NoConnection('closed'))
        else resolve()
      },
    }
    this.#waiting.push(waiter)
    return promise
  }

  /** A turn that is over is that of the next one who waits. */
  #pass(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#lent--
    else next.wake(false)
  }

  /** One that is idle and works; undefined where there is none. */
  async #tested(): Promise<PooledConnection | undefined> {
    const { testOnBorrow, validationIntervalMs, validationQuery } = this.#terms
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.isGood) {
        idle.destroy()
        continue
      }
      if (!testOnBorrow || performance.now() - idle.testedMs < validationIntervalMs) return idle
      try {
        await idle.query(validationQuery, [])
        idle.testedMs = performance.now()
        return idle
      } catch {
        // Whatever is wrong with it, another one may do better.
        idle.destroy()
      }
    }
    return undefined
  }

  async #opened(): Promise<PooledConnection> {
    const { connectMs, statementMs } = this.#terms
    const opening = this.#open()
    const late = () => new NoConnection(`the connection did not open within ${connectMs} ms`)
    try {
      return new PooledConnection(await inTime(opening, connectMs, late), statementMs)
    } catch (error) {
      opening.then(
        connection => connection.destroy(),
        () => {},
      )
      throw error
    }
  }

  #sweep(): void {
    const before = performance.now() - IDLE_MS
    const kept = this.#idle.filter(({ usedMs }) => usedMs >= before)
    for (const old of this.#idle.filter(({ usedMs }) => usedMs < before)) old.destroy()
    this.#idle.splice(0, this.#idle.length, ...kept)
  }
}
