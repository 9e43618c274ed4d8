/** The clock of the database: one clock for all nodes, read now and then and carried on by the monotonic clock. */
import { sql } from 'kysely'
import type { DialectName } from '../database/pooled-dialect.ts'
import type { OutboxConnection } from './outbox-schema.ts'

/** Milliseconds after which the clock is read again. */
const READ_MS = 10_000
/** A clock that moved by more than this beside the monotonic one has jumped. */
const JUMP_MS = 60_000
/** Milliseconds after a jump in which no age is judged. */
const SETTLING_MS = 3_600_000

const NOW: Readonly<Record<DialectName, ReturnType<typeof sql<number>>>> = {
  sqlite: sql<number>`cast(unixepoch('subsec') * 1000 as integer)`,
  postgresql: sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`,
  mysql: sql<number>`cast(unix_timestamp(sysdate(3)) * 1000 as signed)`,
}

export interface OutboxClock {
  /** Milliseconds since 1970, as last read. */
  nowMs(): number
  /** Reads the clock of the database where that is due; always with `isForced`. Rejects with errors of the driver. */
  read(isForced?: boolean): Promise<number>
  /** False for a while after the clock has jumped. Nothing is removed because of its age then. */
  isTrusted(): boolean
}

export class DatabaseClock implements OutboxClock {
  readonly #connection: OutboxConnection
  #readAt = Number.NEGATIVE_INFINITY
  #valueMs = 0
  #jumpedAt = Number.NEGATIVE_INFINITY

  constructor(connection: OutboxConnection) {
    this.#connection = connection
  }

  nowMs(): number {
    return Math.round(this.#valueMs + performance.now() - this.#readAt)
  }

  isTrusted(): boolean {
    return performance.now() - this.#jumpedAt > SETTLING_MS
  }

  async read(isForced = false): Promise<number> {
    if (!isForced && performance.now() - this.#readAt < READ_MS) return this.nowMs()
    const { db, dialect } = this.#connection
    const { rows } = await sql<{ now: number | string }>`select ${NOW[dialect]} as now`.execute(db)
    this.#set(Number(rows[0]!.now))
    return this.nowMs()
  }

  #set(valueMs: number): void {
    const at = performance.now()
    if (Number.isFinite(this.#readAt) && Math.abs(valueMs - this.nowMs()) > JUMP_MS) this.#jumpedAt = at
    this.#valueMs = valueMs
    this.#readAt = at
  }
}
