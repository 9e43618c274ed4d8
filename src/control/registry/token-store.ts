/** Stores issued tokens, token families and revocations. Of a token only its SHA-256 is stored. */
import { hash } from 'node:crypto'
import { SKEW_MAX_MS } from '../../auth/revoked-tokens.ts'
import type { RevocationRecord } from '../../auth/records.ts'
import { CHANGES_KEPT_MS, type ChangeLog, inChunks } from './change-log.ts'
import type { Database, DatabaseTransaction } from './database.ts'
import type { IssuedToken } from './entities.ts'
import { missingRefusal, requireName, requireText, existsRefusal, jsonText } from './field-validation.ts'
import { RegistryRefusal } from './registry-errors.ts'
import { revocationRecord, tokenOf, type TokenRow } from './tables.ts'

interface TokenStoreOptions {
  readonly changes: ChangeLog
  /** Moves expired access tokens to the audit table instead of deleting them. */
  readonly retainsForAuditing: boolean
  readonly nowMs: () => number
}

interface NewToken {
  readonly token: string
  readonly issued: IssuedToken
  readonly data?: string
}

/** Rows per transaction, and transactions per call: the next call continues. */
const BATCH = 500
const BATCHES_MAX = 200
/** Milliseconds that audit rows are kept. */
const AUDIT_KEPT_MS = 365 * 86_400_000
const REVOCATION_KEY_MAX = 512

/** Selection of tokens to revoke. `user`: tokens that a user authorised, not those of the user's applications. */
type RevocationScope =
  | { readonly id: string }
  | { readonly family: string }
  | { readonly consumerKey: string }
  | { readonly user: string; readonly tenant: string }

export class TokenStore {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #options: TokenStoreOptions

  constructor(database: Database, options: TokenStoreOptions) {
    this.#database = database
    this.#changes = options.changes
    this.#options = options
  }

  /** `token`: as the client receives it. `data`: of a code or refresh token, as JSON. */
  add(token: string, issued: IssuedToken, data = ''): Promise<void> {
    return this.addAll([{ token, issued, data }])
  }

  /** Adds all tokens of one response, or none. Refused where the client is removed or the family is revoked. */
  async addAll(tokens: readonly NewToken[]): Promise<void> {
    const rows = tokens.map(token => this.#rowOf(token))
    const unique = () => existsRefusal('a token with this id or value', 'token')
    await this.#database.transaction(
      async transaction => {
        for (const key of new Set(rows.map(row => row.consumer_key))) await this.#requireClient(transaction, key)
        for (const family of new Set(rows.map(row => row.family))) {
          await this.#requireActiveFamily(
            transaction,
            rows.filter(row => row.family === family),
          )
        }
        for (const row of rows) await transaction.insertInto('sluice_tokens').values(row).execute()
      },
      { unique },
    )
  }

  /** Finds a token by its value; null for an unknown one. */
  async find(token: string): Promise<{ readonly issued: IssuedToken; readonly data: string } | null> {
    const row = await this.#database.read(db =>
      db.selectFrom('sluice_tokens').selectAll().where('hash', '=', tokenHash(token)).executeTakeFirst(),
    )
    return row === undefined ? null : { issued: tokenOf(row), data: row.data }
  }

  /**
   * Uses a code or refresh token, which is valid once: ACTIVE becomes USED. Resolves with the previous state, so that
   * of concurrent calls one sees ACTIVE.
   */
  consume(token: string): Promise<{ readonly issued: IssuedToken; readonly data: string } | null> {
    const tokenDigest = tokenHash(token)
    return this.#database.transaction(async transaction => {
      // The database lets one of two concurrent calls update the row; the other finds nothing to update.
      const change = transaction.updateTable('sluice_tokens').set({ state: 'USED' })
      const { numUpdatedRows } = await change
        .where('hash', '=', tokenDigest)
        .where('state', '=', 'ACTIVE')
        .where('kind', '!=', 'access')
        .executeTakeFirstOrThrow()
      const row = await transaction
        .selectFrom('sluice_tokens')
        .selectAll()
        .where('hash', '=', tokenDigest)
        .executeTakeFirst()
      if (row === undefined) return null
      const issued = tokenOf(row)
      return { issued: numUpdatedRows === 1n ? { ...issued, state: 'ACTIVE' } : issued, data: row.data }
    })
  }

  /** Revokes tokens; gateways hear of access tokens that are not expired. */
  async revoke(scope: RevocationScope): Promise<void> {
    if ('family' in scope) await this.#revokeFamily(scope.family)
    for (let more = true; more; ) more = await this.#revokeBatch(scope)
  }

  /** Revokes a token by key: a token of another issuer, or one that the registry does not keep. */
  async addRevocation({ key, expiresMs }: RevocationRecord, consumerKey: string): Promise<void> {
    requireName('token', key, REVOCATION_KEY_MAX)
    if (expiresMs + SKEW_MAX_MS <= this.#options.nowMs()) return
    await this.#changes.transaction(async (transaction, logChange) => {
      const shorter = transaction.deleteFrom('sluice_revocations').where('revocation_key', '=', key)
      await shorter.where('expires_ms', '<', expiresMs).execute()
      await this.#insertRevocations(transaction, [
        { revocation_key: key, consumer_key: consumerKey, expires_ms: expiresMs },
      ])
      logChange('revoked', key, expiresMs)
    })
  }

  /** Revocations of tokens that a gateway could still accept. */
  async activeRevocations(): Promise<readonly RevocationRecord[]> {
    const sinceMs = this.#options.nowMs() - SKEW_MAX_MS
    const rows = await this.#database.read(db =>
      db.selectFrom('sluice_revocations').selectAll().where('expires_ms', '>', sinceMs).execute(),
    )
    return rows.map(revocationRecord)
  }

  /** Removes expired tokens, families, revocations, audit rows and changes. Resolves with the number of tokens. */
  async removeExpired(nowMs: number): Promise<number> {
    let removed = 0
    for (let batch = 0; batch < BATCHES_MAX; batch++) {
      const some = await this.#removeExpiredBatch(nowMs)
      removed += some
      if (some < BATCH) break
    }
    await this.#database.transaction(async transaction => {
      await transaction
        .deleteFrom('sluice_revocations')
        .where('expires_ms', '<', nowMs - SKEW_MAX_MS)
        .execute()
      await transaction.deleteFrom('sluice_families').where('expires_ms', '<', nowMs).execute()
      await transaction
        .deleteFrom('sluice_token_audit')
        .where('expires_ms', '<', nowMs - AUDIT_KEPT_MS)
        .execute()
      await transaction
        .deleteFrom('sluice_changes')
        .where('made_ms', '<', nowMs - CHANGES_KEPT_MS)
        .execute()
    })
    return removed
  }

  #rowOf({ token, issued, data = '' }: NewToken): TokenRow {
    requireName('id', issued.id, 36)
    requireName('token', issued.revocationKey, REVOCATION_KEY_MAX)
    requireName('family', issued.family, 64)
    requireText('data', data)
    return {
      id: issued.id,
      hash: tokenHash(token),
      kind: issued.kind,
      revocation_key: issued.revocationKey,
      consumer_key: issued.consumerKey,
      user_name: issued.user,
      tenant: issued.tenant,
      is_application: issued.isApplication ? 1 : 0,
      scopes: jsonText('scope', issued.scopes),
      issued_ms: issued.issuedMs,
      expires_ms: issued.expiresMs,
      state: issued.state,
      family: issued.family,
      data,
      kept: '',
    }
  }

  /** Locks the client's row: a token that is added during the client's removal would remain. */
  async #requireClient(transaction: DatabaseTransaction, consumerKey: string): Promise<void> {
    const clients = transaction
      .selectFrom('sluice_clients')
      .select('consumer_key')
      .where('consumer_key', '=', consumerKey)
    if ((await this.#database.lockForShare(clients).executeTakeFirst()) === undefined)
      throw missingRefusal('client', 'client_id')
  }

  /**
   * Creates and locks the family's row, which exists once a token of it can be replayed. Throws RegistryRefusal for a
   * revoked family.
   */
  async #requireActiveFamily(transaction: DatabaseTransaction, rows: readonly TokenRow[]): Promise<void> {
    const family = rows[0]!.family
    const replayable = rows.filter(({ kind }) => kind !== 'access')
    if (replayable.length > 0) {
      const expires_ms = Math.max(...replayable.map(row => row.expires_ms))
      const row = { family, state: 'ACTIVE', expires_ms } as const
      await this.#database.insertOrIgnore(transaction.insertInto('sluice_families').values(row), 'family').execute()
      const later = transaction.updateTable('sluice_families').set({ expires_ms }).where('family', '=', family)
      await later.where('expires_ms', '<', expires_ms).execute()
    }
    const families = transaction.selectFrom('sluice_families').select('state').where('family', '=', family)
    const known = await this.#database.lockForShare(families).executeTakeFirst()
    if (known?.state === 'REVOKED')
      throw new RegistryRefusal('invalid', 'token', 'the authorisation of this token is revoked')
  }

  async #revokeFamily(family: string): Promise<void> {
    await this.#database.transaction(async transaction => {
      const change = transaction.updateTable('sluice_families').set({ state: 'REVOKED' })
      await change.where('family', '=', family).execute()
    })
  }

  /** True where more rows may match. */
  #revokeBatch(scope: RevocationScope): Promise<boolean> {
    const nowMs = this.#options.nowMs()
    return this.#changes.transaction(async (transaction, logChange) => {
      const active = transaction.selectFrom('sluice_tokens').selectAll().where('state', '=', 'ACTIVE').limit(BATCH)
      const rows = await ('id' in scope
        ? active.where('id', '=', scope.id)
        : 'family' in scope
          ? active.where('family', '=', scope.family)
          : 'consumerKey' in scope
            ? active.where('consumer_key', '=', scope.consumerKey)
            : active
                .where('user_name', '=', scope.user)
                .where('tenant', '=', scope.tenant)
                .where('is_application', '=', 0)
      ).execute()
      if (rows.length === 0) return false
      const ids = rows.map(({ id }) => id)
      await transaction.updateTable('sluice_tokens').set({ state: 'REVOKED' }).where('id', 'in', ids).execute()
      const accepted = rows.filter(row => row.kind === 'access' && Number(row.expires_ms) + SKEW_MAX_MS > nowMs)
      await this.#insertRevocations(transaction, accepted)
      for (const row of accepted) logChange('revoked', row.revocation_key, Number(row.expires_ms))
      return rows.length === BATCH
    })
  }

  async #insertRevocations(
    transaction: DatabaseTransaction,
    revoked: readonly Pick<TokenRow, 'revocation_key' | 'consumer_key' | 'expires_ms'>[],
  ): Promise<void> {
    const rows = revoked.map(({ revocation_key, consumer_key, expires_ms }) => ({
      ...{ revocation_key, consumer_key, expires_ms },
    }))
    for (const some of inChunks(rows)) {
      const insert = transaction.insertInto('sluice_revocations').values([...some])
      await this.#database.insertOrIgnore(insert, 'revocation_key').execute()
    }
  }

  #removeExpiredBatch(nowMs: number): Promise<number> {
    return this.#database.transaction(async transaction => {
      const expired = transaction.selectFrom('sluice_tokens').selectAll().where('expires_ms', '<', nowMs)
      const rows = await expired.orderBy('expires_ms').limit(BATCH).execute()
      if (rows.length === 0) return 0
      const access = rows.filter(({ kind }) => kind === 'access')
      if (this.#options.retainsForAuditing && access.length > 0) {
        const audits = access.map(({ hash: _hash, data: _data, kept: _kept, ...audit }) => audit)
        // Another node may remove the same rows.
        await this.#database.insertOrIgnore(transaction.insertInto('sluice_token_audit').values(audits), 'id').execute()
      }
      const ids = rows.map(({ id }) => id)
      await transaction.deleteFrom('sluice_tokens').where('id', 'in', ids).execute()
      return rows.length
    })
  }
}

/** Plain SHA-256, base64url: tokens have at least 128 random or signed bits, so their hash cannot be guessed. */
function tokenHash(token: string): string {
  return hash('sha256', token, 'base64url')
}
