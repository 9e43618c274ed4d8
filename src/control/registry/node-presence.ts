/**
 * The nodes that use a database server, and the issuer of each. Nodes with different issuers would refuse each other's
 * tokens, so the database has one issuer. A node that names none takes it; a node with another one does not start
 * beside others. Times are those of the database.
 */
import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import type { EventLog } from '../../observe/events.ts'
import type { ChangeLog } from './change-log.ts'
import type { Database, DatabaseTransaction } from './database.ts'
import { IssuerConflict, IssuerShared } from './registry-errors.ts'

interface PresenceOptions {
  readonly issuer: string
  /** The operator has named no issuer. */
  readonly takesIssuer: boolean
  readonly report: EventLog['report'] | undefined
}

const HEARTBEAT_MS = 15_000
/** Milliseconds without a heartbeat after which a node is taken for gone. */
const GONE_MS = 60_000

export class NodePresence {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #issuer: string
  readonly #takesIssuer: boolean
  readonly #report: EventLog['report'] | undefined
  readonly #node = randomUUID()
  /** Milliseconds since 1970 by the clock of the server. */
  readonly #now
  #timer: NodeJS.Timeout | undefined
  #hasConflict = false

  constructor(database: Database, changes: ChangeLog, { issuer, takesIssuer, report }: PresenceOptions) {
    this.#database = database
    this.#changes = changes
    this.#issuer = issuer
    this.#takesIssuer = takesIssuer
    this.#report = report
    this.#now =
      database.dialect === 'postgresql'
        ? sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`
        : sql<number>`cast(unix_timestamp(now(3)) * 1000 as signed)`
  }

  /** Rejects with IssuerConflict or IssuerShared: then nothing has changed. */
  async enter(): Promise<void> {
    // The embedded database has one node.
    if (this.#database.dialect === 'sqlite') return
    await this.#changes.transaction(async transaction => {
      await this.#changes.lock(transaction)
      const other = await this.#otherIssuer(transaction)
      const stored = await transaction.selectFrom('sluice_issuer').select('issuer').executeTakeFirst()
      const shared = other ?? stored?.issuer ?? this.#issuer
      if (this.#takesIssuer && shared !== this.#issuer) throw new IssuerShared(shared)
      if (other !== undefined) throw this.#conflict(other)
      await transaction.deleteFrom('sluice_issuer').execute()
      await transaction.insertInto('sluice_issuer').values({ id: 1, issuer: this.#issuer }).execute()
      await transaction.deleteFrom('sluice_nodes').where('seen_ms', '<', this.#goneBefore()).execute()
      await this.#insert(transaction)
    })
    this.#timer = setInterval(() => void this.#beat().catch(() => {}), HEARTBEAT_MS).unref()
  }

  /** Never rejects: the database may be down. */
  async leave(): Promise<void> {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    const own = this.#database.kysely.deleteFrom('sluice_nodes').where('node', '=', this.#node)
    await own.execute().catch(() => {})
  }

  #goneBefore() {
    return sql<number>`${this.#now} - ${sql.lit(GONE_MS)}`
  }

  async #insert(transaction: DatabaseTransaction): Promise<void> {
    const row = { node: this.#node, issuer: this.#issuer, seen_ms: this.#now }
    await transaction.insertInto('sluice_nodes').values(row).execute()
  }

  #otherIssuer(transaction: DatabaseTransaction): Promise<string | undefined> {
    const others = transaction.selectFrom('sluice_nodes').select('issuer').where('node', '!=', this.#node)
    const present = others.where('issuer', '!=', this.#issuer).where('seen_ms', '>=', this.#goneBefore()).limit(1)
    return present.executeTakeFirst().then(row => row?.issuer)
  }

  /** A node that was cut off from the database may find another issuer there. */
  async #beat(): Promise<void> {
    const other = await this.#database.transaction(async transaction => {
      const seen = transaction.updateTable('sluice_nodes').set({ seen_ms: this.#now })
      const { numUpdatedRows } = await seen.where('node', '=', this.#node).executeTakeFirstOrThrow()
      if (numUpdatedRows === 0n) await this.#insert(transaction)
      return this.#otherIssuer(transaction)
    })
    if (other !== undefined && !this.#hasConflict) {
      this.#report?.('error', 'another node has another issuer', {
        CAUSE_OF_ERROR: this.#conflict(other).message,
      })
    }
    this.#hasConflict = other !== undefined
  }

  #conflict(other: string): IssuerConflict {
    return new IssuerConflict(
      `oauth.oidc.id_token.issuer is ${this.#issuer} here and ${other} on another node of ` +
        `${this.#database.description}, so that each would refuse the tokens of the other: set one issuer on all ` +
        `nodes; to change it, stop the other nodes, or wait ${GONE_MS / 1000} s after they have ended`,
    )
  }
}
