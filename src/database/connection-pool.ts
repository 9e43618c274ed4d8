/**
 * Connection pool of one database: a limit of connections, a bounded wait, and no dead connection handed out. The
 * drivers' own pools wait without limit.
 */
import type { QueryResult } from 'kysely'
import { withTimeout } from '../runtime/with-timeout.ts'

export interface Connection {
  /** Rejects with errors of the driver. */
  query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>>
  /** True once the driver has seen the connection end. */
  isDead(): boolean
  /** Closes at once, even during a statement. */
  destroy(): void
}

export interface PoolSettings {
  readonly maxActive: number
  /** Milliseconds to wait for a connection; 0 for no wait. */
  readonly maxWaitMs: number
  readonly testOnBorrow: boolean
  readonly validationIntervalMs: number
  readonly validationQuery: string
  /** Milliseconds that a connection may take to open. */
  readonly connectMs: number
  /** Milliseconds that a statement may take; the connection is closed then. */
  readonly statementMs: number
}

/** No connection was available, or a statement timed out. */
export class ConnectionUnavailable extends Error {
  override readonly name = 'ConnectionUnavailable'
}

/** Hears whether the database answers. */
export interface PoolObserver {
  /** A connection did not open, or a statement got no answer. */
  failed(error: unknown): void
  worked(): void
  /** The number of connections in use has changed. */
  used(connections: number): void
  /** A caller waits for a connection. */
  waits(): void
}

/** Limit of callers that wait for a connection. */
export const WAITERS_MAX = 1000
/** Milliseconds after which an idle connection is closed. */
const IDLE_MS = 300_000

interface Waiter {
  readonly wake: (closed: boolean) => void
}

export class PooledConnection {
  readonly #connection: Connection
  readonly #statementMs: number
  readonly #observer: PoolObserver | null
  testedMs: number
  usedMs: number
  #isDestroyed = false

  constructor(connection: Connection, statementMs: number, observer: PoolObserver | null) {
    this.#connection = connection
    this.#statementMs = statementMs
    this.#observer = observer
    this.testedMs = performance.now()
    this.usedMs = this.testedMs
  }

  get isUsable(): boolean {
    return !this.#isDestroyed && !this.#connection.isDead()
  }

  /** Rejects with ConnectionUnavailable after `statementMs`; the connection is unusable then. */
  async query(sql: string, parameters: readonly unknown[]): Promise<QueryResult<unknown>> {
    const result = await withTimeout(this.#connection.query(sql, parameters), this.#statementMs, () => {
      this.destroy()
      const error = new ConnectionUnavailable(`a statement timed out after ${this.#statementMs} ms`)
      this.#observer?.failed(error)
      return error
    })
    this.#observer?.worked()
    return result
  }

  destroy(): void {
    if (this.#isDestroyed) return
    this.#isDestroyed = true
    this.#connection.destroy()
  }
}

export class ConnectionPool {
  readonly #open: () => Promise<Connection>
  readonly #settings: PoolSettings
  readonly #observer: PoolObserver | null
  /** In order of last use. */
  readonly #idle: PooledConnection[] = []
  readonly #waiters: Waiter[] = []
  readonly #idleTimer: NodeJS.Timeout
  #inUse = 0
  #isClosed = false

  constructor(open: () => Promise<Connection>, settings: PoolSettings, observer: PoolObserver | null = null) {
    this.#open = open
    this.#settings = settings
    this.#observer = observer
    this.#idleTimer = setInterval(() => this.#closeOldIdle(), IDLE_MS / 4).unref()
  }

  /** Connections that are used now. */
  get inUse(): number {
    return this.#inUse
  }

  /**
   * The caller owes a `release`. Rejects with ConnectionUnavailable, or with errors of the driver for a connection that
   * cannot be opened.
   */
  async acquire(): Promise<PooledConnection> {
    await this.#reserveSlot()
    try {
      return (await this.#takeIdle()) ?? (await this.#openConnection())
    } catch (error) {
      this.#releaseSlot()
      throw error
    }
  }

  release(connection: PooledConnection): void {
    connection.usedMs = performance.now()
    if (!connection.isUsable) this.#distrustIdle()
    if (this.#isClosed || !connection.isUsable) connection.destroy()
    else this.#idle.push(connection)
    this.#releaseSlot()
  }

  /** After one connection ended, a server restart may have ended all: idle ones are tested again, or closed. */
  #distrustIdle(): void {
    if (this.#settings.testOnBorrow) for (const idle of this.#idle) idle.testedMs = Number.NEGATIVE_INFINITY
    else for (const idle of this.#idle.splice(0)) idle.destroy()
  }

  /** Closes idle connections now and others when they are released. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#idleTimer)
    for (const connection of this.#idle.splice(0)) connection.destroy()
    for (const { wake } of this.#waiters.splice(0)) wake(true)
  }

  async #reserveSlot(): Promise<void> {
    if (this.#isClosed) throw new ConnectionUnavailable('the pool is closed')
    if (this.#inUse < this.#settings.maxActive) {
      this.#inUse++
      this.#observer?.used(this.#inUse)
      return
    }
    if (this.#waiters.length >= WAITERS_MAX)
      throw new ConnectionUnavailable(`${WAITERS_MAX} callers already wait for a connection`)
    this.#observer?.waits()
    await this.#waitForSlot()
  }

  #waitForSlot(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
      reject(new ConnectionUnavailable(`no connection became free within ${this.#settings.maxWaitMs} ms`))
    }, this.#settings.maxWaitMs)
    const waiter = {
      wake: (closed: boolean) => {
        clearTimeout(timer)
        if (closed) reject(new ConnectionUnavailable('the pool is closed'))
        else resolve()
      },
    }
    this.#waiters.push(waiter)
    return promise
  }

  /** Passes the slot to the next waiter. */
  #releaseSlot(): void {
    const next = this.#waiters.shift()
    if (next !== undefined) {
      next.wake(false)
      return
    }
    this.#inUse--
    this.#observer?.used(this.#inUse)
  }

  /** An idle connection that works; undefined without one. */
  async #takeIdle(): Promise<PooledConnection | undefined> {
    const { testOnBorrow, validationIntervalMs, validationQuery } = this.#settings
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.isUsable) {
        idle.destroy()
        continue
      }
      if (!testOnBorrow || performance.now() - idle.testedMs < validationIntervalMs) return idle
      try {
        await idle.query(validationQuery, [])
        idle.testedMs = performance.now()
        return idle
      } catch {
        // Another connection may work after any error.
        idle.destroy()
      }
    }
    return undefined
  }

  async #openConnection(): Promise<PooledConnection> {
    const { connectMs, statementMs } = this.#settings
    const opening = this.#open()
    const timedOut = () => new ConnectionUnavailable(`the connection did not open within ${connectMs} ms`)
    try {
      const connection = await withTimeout(opening, connectMs, timedOut)
      this.#observer?.worked()
      return new PooledConnection(connection, statementMs, this.#observer)
    } catch (error) {
      this.#observer?.failed(error)
      opening.then(
        connection => connection.destroy(),
        () => {},
      )
      throw error
    }
  }

  #closeOldIdle(): void {
    const before = performance.now() - IDLE_MS
    const recent = this.#idle.filter(({ usedMs }) => usedMs >= before)
    for (const old of this.#idle.filter(({ usedMs }) => usedMs < before)) old.destroy()
    this.#idle.splice(0, this.#idle.length, ...recent)
  }
}
