/** Tokens that were given, and what is not good any more. */
import { SKEW_MAX_MS } from '../identity/revoked-set.ts'
import type { RevokedFacts } from '../identity/facts.ts'
import { CHANGES_KEPT_MS, type ChangeLog, inPieces } from './change-log.ts'
import type { Database, Within } from './database.ts'
import type { IssuedToken } from './entities.ts'
import { missing, mustBeName, mustBeText, taken, writtenJson } from './field-rules.ts'
import { RegistryRefusal, type RevokedTokens, type TokenStore } from './registry.ts'
import { revokedFacts, tokenOf } from './rows.ts'
import type { TokenRow } from './tables.ts'
import { hashOfToken, type TokenVault } from './token-vault.ts'

interface TokenStoreTerms {
  readonly vault: TokenVault
  /** Access tokens that are over go to the table of audits. */
  readonly retainsForAuditing: boolean
  readonly nowMs: () => number
}

interface Given {
  readonly token: string
  readonly issued: IssuedToken
  readonly data?: string
}

/** Rows of one transaction of a clean-up, and transactions of one call: the rest is for the next. */
const BATCH = 500
const BATCHES_MAX = 200
/** Milliseconds that rows for audits are kept. */
const AUDIT_KEPT_MS = 365 * 86_400_000
const REVOCATION_KEY_MAX = 512

export class DatabaseTokenStore implements TokenStore {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #terms: TokenStoreTerms

  constructor(database: Database, changes: ChangeLog, terms: TokenStoreTerms) {
    this.#database = database
    this.#changes = changes
    this.#terms = terms
  }

  add(token: string, issued: IssuedToken, data = ''): Promise<void> {
    return this.addAll([{ token, issued, data }])
  }

  async addAll(tokens: readonly Given[]): Promise<void> {
    const rows = tokens.map(given => this.#rowOf(given))
    const unique = () => taken('a token with this id or value', 'token')
    await this.#database.transaction(
      async within => {
        for (const key of new Set(rows.map(row => row.consumer_key))) await this.#clientIsThere(within, key)
        for (const family of new Set(rows.map(row => row.family))) {
          await this.#familyHolds(
            within,
            rows.filter(row => row.family === family),
          )
        }
        for (const row of rows) await within.insertInto('sluice_tokens').values(row).execute()
      },
      { unique },
    )
  }

  async find(token: string): Promise<{ readonly issued: IssuedToken; readonly data: string } | null> {
    const row = await this.#database.read(db =>
      db.selectFrom('sluice_tokens').selectAll().where('hash', '=', hashOfToken(token)).executeTakeFirst(),
    )
    return row === undefined ? null : { issued: tokenOf(row), data: row.data }
  }

  use(token: string): Promise<{ readonly issued: IssuedToken; readonly data: string } | null> {
    const hash = hashOfToken(token)
    return this.#database.transaction(async within => {
      // Of two at once the database lets one change the row, and the other one finds nothing to change.
      const change = within.updateTable('sluice_tokens').set({ state: 'USED' })
      const { numUpdatedRows } = await change
        .where('hash', '=', hash)
        .where('state', '=', 'ACTIVE')
        .where('kind', '!=', 'access')
        .executeTakeFirstOrThrow()
      const row = await within.selectFrom('sluice_tokens').selectAll().where('hash', '=', hash).executeTakeFirst()
      if (row === undefined) return null
      const issued = tokenOf(row)
      return { issued: numUpdatedRows === 1n ? { ...issued, state: 'ACTIVE' } : issued, data: row.data }
    })
  }

  async kept(id: string): Promise<string> {
    const row = await this.#database.read(db =>
      db.selectFrom('sluice_tokens').select('kept').where('id', '=', id).executeTakeFirst(),
    )
    return row === undefined ? '' : this.#terms.vault.open(row.kept, id)
  }

  async revoke(which: RevokedTokens): Promise<void> {
    if ('family' in which) await this.#endFamilies([which.family])
    for (let more = true; more; ) more = await this.#revokeSome(which)
  }

  async revokeFacts({ key, expiresMs }: RevokedFacts, consumerKey: string): Promise<void> {
    mustBeName('token', key, REVOCATION_KEY_MAX)
    if (expiresMs + SKEW_MAX_MS <= this.#terms.nowMs()) return
    await this.#changes.transaction(async (within, note) => {
      const shorter = within.deleteFrom('sluice_revocations').where('revocation_key', '=', key)
      await shorter.where('expires_ms', '<', expiresMs).execute()
      await this.#enlist(within, [{ revocation_key: key, consumer_key: consumerKey, expires_ms: expiresMs }])
      note('revoked', key, expiresMs)
    })
  }

  /** What is revoked and might still be accepted. */
  async revocations(): Promise<readonly RevokedFacts[]> {
    const sinceMs = this.#terms.nowMs() - SKEW_MAX_MS
    const rows = await this.#database.read(db =>
      db.selectFrom('sluice_revocations').selectAll().where('expires_ms', '>', sinceMs).execute(),
    )
    return rows.map(revokedFacts)
  }

  async cleanUp(nowMs: number): Promise<number> {
    let removed = 0
    for (let batch = 0; batch < BATCHES_MAX; batch++) {
      const some = await this.#cleanUpSome(nowMs)
      removed += some
      if (some < BATCH) break
    }
    await this.#database.transaction(async within => {
      await within
        .deleteFrom('sluice_revocations')
        .where('expires_ms', '<', nowMs - SKEW_MAX_MS)
        .execute()
      await within.deleteFrom('sluice_families').where('expires_ms', '<', nowMs).execute()
      await within
        .deleteFrom('sluice_token_audit')
        .where('expires_ms', '<', nowMs - AUDIT_KEPT_MS)
        .execute()
      await within
        .deleteFrom('sluice_changes')
        .where('made_ms', '<', nowMs - CHANGES_KEPT_MS)
        .execute()
    })
    return removed
  }

  #rowOf({ token, issued, data = '' }: Given): TokenRow {
    mustBeName('id', issued.id, 36)
    mustBeName('token', issued.revocationKey, REVOCATION_KEY_MAX)
    mustBeName('family', issued.family, 64)
    mustBeText('data', data)
    return {
      id: issued.id,
      hash: hashOfToken(token),
      kind: issued.kind,
      revocation_key: issued.revocationKey,
      consumer_key: issued.consumerKey,
      user_name: issued.user,
      tenant: issued.tenant,
      is_application: issued.isApplication ? 1 : 0,
      scopes: writtenJson('scope', issued.scopes),
      issued_ms: issued.issuedMs,
      expires_ms: issued.expiresMs,
      state: issued.state,
      family: issued.family,
      data,
      kept: this.#terms.vault.keep(token, issued.id),
    }
  }

  /** A client that is being removed takes its tokens with it: one that came later would be left behind. */
  async #clientIsThere(within: Within, consumerKey: string): Promise<void> {
    const clients = within.selectFrom('sluice_clients').select('consumer_key').where('consumer_key', '=', consumerKey)
    if ((await this.#database.held(clients).executeTakeFirst()) === undefined) throw missing('client', 'client_id')
  }

  /** Of a family there is a row as soon as something of it can be shown twice. */
  async #familyHolds(within: Within, rows: readonly TokenRow[]): Promise<void> {
    const family = rows[0]!.family
    const shown = rows.filter(({ kind }) => kind !== 'access')
    if (shown.length > 0) {
      const expires_ms = Math.max(...shown.map(row => row.expires_ms))
      const row = { family, state: 'ACTIVE', expires_ms } as const
      await this.#database.unlessThere(within.insertInto('sluice_families').values(row), 'family').execute()
      const later = within.updateTable('sluice_families').set({ expires_ms }).where('family', '=', family)
      await later.where('expires_ms', '<', expires_ms).execute()
    }
    const families = within.selectFrom('sluice_families').select('state').where('family', '=', family)
    const known = await this.#database.held(families).executeTakeFirst()
    if (known?.state === 'REVOKED')
      throw new RegistryRefusal('invalid', 'token', 'what this token would come of is revoked')
  }

  async #endFamilies(families: readonly string[]): Promise<void> {
    await this.#database.transaction(async within => {
      const change = within.updateTable('sluice_families').set({ state: 'REVOKED' })
      await change.where('family', 'in', families).execute()
    })
  }

  /** Answers whether there may be more. */
  #revokeSome(which: RevokedTokens): Promise<boolean> {
    const nowMs = this.#terms.nowMs()
    return this.#changes.transaction(async (within, note) => {
      const all = within.selectFrom('sluice_tokens').selectAll().where('state', '=', 'ACTIVE').limit(BATCH)
      const rows = await ('id' in which
        ? all.where('id', '=', which.id)
        : 'family' in which
          ? all.where('family', '=', which.family)
          : 'consumerKey' in which
            ? all.where('consumer_key', '=', which.consumerKey)
            : all.where('user_name', '=', which.user).where('tenant', '=', which.tenant).where('is_application', '=', 0)
      ).execute()
      if (rows.length === 0) return false
      const ids = rows.map(({ id }) => id)
      await within.updateTable('sluice_tokens').set({ state: 'REVOKED' }).where('id', 'in', ids).execute()
      const lasting = rows.filter(row => row.kind === 'access' && Number(row.expires_ms) + SKEW_MAX_MS > nowMs)
      await this.#enlist(within, lasting)
      for (const row of lasting) note('revoked', row.revocation_key, Number(row.expires_ms))
      return rows.length === BATCH
    })
  }

  async #enlist(
    within: Within,
    revoked: readonly Pick<TokenRow, 'revocation_key' | 'consumer_key' | 'expires_ms'>[],
  ): Promise<void> {
    const rows = revoked.map(({ revocation_key, consumer_key, expires_ms }) => ({
      ...{ revocation_key, consumer_key, expires_ms },
    }))
    for (const some of inPieces(rows)) {
      const insert = within.insertInto('sluice_revocations').values([...some])
      await this.#database.unlessThere(insert, 'revocation_key').execute()
    }
  }

  #cleanUpSome(nowMs: number): Promise<number> {
    return this.#database.transaction(async within => {
      const over = within.selectFrom('sluice_tokens').selectAll().where('expires_ms', '<', nowMs)
      const rows = await over.orderBy('expires_ms').limit(BATCH).execute()
      if (rows.length === 0) return 0
      const access = rows.filter(({ kind }) => kind === 'access')
      if (this.#terms.retainsForAuditing && access.length > 0) {
        const audits = access.map(({ hash: _hash, data: _data, kept: _kept, ...audit }) => audit)
        // Another node may be at the same rows.
        await this.#database.unlessThere(within.insertInto('sluice_token_audit').values(audits), 'id').execute()
      }
      const ids = rows.map(({ id }) => id)
      await within.deleteFrom('sluice_tokens').where('id', 'in', ids).execute()
      return rows.length
    })
  }
}
