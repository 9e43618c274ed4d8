/** OAuth clients. */
import { randomBytes } from 'node:crypto'
import type { ChangeLog } from './change-log.ts'
import type { Database } from './database.ts'
import type { Client } from './entities.ts'
import { missing, mustBeName, taken, writtenJson } from './field-rules.ts'
import { hashPassword } from './password-hash.ts'
import type { ClientStore, TokenStore } from './registry.ts'
import { clientOf } from './rows.ts'
import type { ClientRow } from './tables.ts'
import type { VerifiedSecrets } from './verified-secrets.ts'

interface ClientStoreTerms {
  readonly verified: VerifiedSecrets
  readonly nowMs: () => number
}

const KEY_BYTES = 20
const SECRET_BYTES = 32

export class DatabaseClientStore implements ClientStore {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #tokens: TokenStore
  readonly #nowMs: () => number
  readonly #verified: VerifiedSecrets

  constructor(database: Database, changes: ChangeLog, tokens: TokenStore, terms: ClientStoreTerms) {
    this.#database = database
    this.#changes = changes
    this.#tokens = tokens
    this.#nowMs = terms.nowMs
    this.#verified = terms.verified
  }

  async get(consumerKey: string): Promise<Client | null> {
    const row = await this.#row(consumerKey)
    return row === undefined ? null : clientOf(row)
  }

  async ofApplication(applicationId: string): Promise<readonly Client[]> {
    const rows = await this.#database.read(db => {
      const clients = db.selectFrom('sluice_clients').selectAll().where('application_id', '=', applicationId)
      return clients.orderBy('created_ms').orderBy('consumer_key').execute()
    })
    return rows.map(clientOf)
  }

  async authenticate(consumerKey: string, secret: string): Promise<Client | null> {
    const row = await this.#row(consumerKey)
    const phc = row?.secret_hash ?? ''
    const { isRight, isOld } = await this.#verified.verify(consumerKey, secret, phc)
    if (!isRight || row === undefined) return null
    if (isOld) await this.#replaceHash(consumerKey, phc, await hashPassword(secret))
    return clientOf(row)
  }

  async create(
    given: Omit<Client, 'consumerKey'> & { readonly consumerKey?: string },
  ): Promise<{ readonly client: Client; readonly secret: string }> {
    const client = { ...given, consumerKey: given.consumerKey ?? randomBytes(KEY_BYTES).toString('base64url') }
    mustBeName('client_id', client.consumerKey)
    mustBeName('client_name', client.name)
    const secret = client.isPublic ? '' : newSecret()
    const secret_hash = client.isPublic ? '' : await hashPassword(secret)
    const row: ClientRow = {
      consumer_key: client.consumerKey,
      application_id: client.applicationId,
      key_type: client.keyType,
      owner: client.owner,
      tenant: client.tenant,
      is_public: client.isPublic ? 1 : 0,
      secret_hash,
      created_ms: this.#nowMs(),
      ...changeable(client),
    }
    await this.#changes.transaction(
      async (within, note) => {
        await within.insertInto('sluice_clients').values(row).execute()
        if (client.applicationId !== null) note('key', client.consumerKey)
      },
      {
        unique: () => taken('a client with this key', 'client_id'),
        reference: () => missing('application', 'applicationId'),
      },
    )
    return { client: clientOf(row), secret }
  }

  async update(
    consumerKey: string,
    change: Partial<Pick<Client, 'name' | 'grants' | 'redirectUris' | 'validityS' | 'tokenType'>>,
  ): Promise<Client> {
    if (change.name !== undefined) mustBeName('client_name', change.name)
    return this.#changes.transaction(async within => {
      const clients = within.selectFrom('sluice_clients').selectAll().where('consumer_key', '=', consumerKey)
      const row = await clients.executeTakeFirst()
      if (row === undefined) throw missing('client')
      const changed = changeable({ ...clientOf(row), ...change })
      await within.updateTable('sluice_clients').set(changed).where('consumer_key', '=', consumerKey).execute()
      return clientOf({ ...row, ...changed })
    })
  }

  async map(consumerKey: string, applicationId: string, keyType: Client['keyType']): Promise<Client> {
    return this.#changes.transaction(
      async (within, note) => {
        const change = within.updateTable('sluice_clients').set({ application_id: applicationId, key_type: keyType })
        const free = change.where('consumer_key', '=', consumerKey).where('application_id', 'is', null)
        const { numUpdatedRows } = await free.executeTakeFirstOrThrow()
        const clients = within.selectFrom('sluice_clients').selectAll().where('consumer_key', '=', consumerKey)
        const row = await clients.executeTakeFirst()
        if (row === undefined) throw missing('client')
        if (numUpdatedRows === 0n) throw taken('an application that this client belongs to', 'consumerKey')
        note('key', consumerKey)
        return clientOf(row)
      },
      { reference: () => missing('application', 'applicationId') },
    )
  }

  async renewSecret(consumerKey: string): Promise<string> {
    const client = await this.get(consumerKey)
    if (client === null) throw missing('client')
    if (client.isPublic) return ''
    const secret = newSecret()
    const secret_hash = await hashPassword(secret)
    await this.#database.transaction(async within => {
      const change = within.updateTable('sluice_clients').set({ secret_hash })
      const { numUpdatedRows } = await change.where('consumer_key', '=', consumerKey).executeTakeFirstOrThrow()
      if (numUpdatedRows === 0n) throw missing('client')
    })
    return secret
  }

  async remove(consumerKey: string): Promise<void> {
    await this.#changes.transaction(async (within, note) => {
      const removal = within.deleteFrom('sluice_clients').where('consumer_key', '=', consumerKey)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missing('client')
      note('key', consumerKey)
    })
    await this.#tokens.revoke({ consumerKey })
  }

  #row(consumerKey: string): Promise<ClientRow | undefined> {
    return this.#database.read(db =>
      db.selectFrom('sluice_clients').selectAll().where('consumer_key', '=', consumerKey).executeTakeFirst(),
    )
  }

  async #replaceHash(consumerKey: string, phc: string, secret_hash: string): Promise<void> {
    await this.#database.transaction(async within => {
      const change = within.updateTable('sluice_clients').set({ secret_hash }).where('consumer_key', '=', consumerKey)
      // Not where it was changed meanwhile.
      await change.where('secret_hash', '=', phc).execute()
    })
  }
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}

function changeable({ name, grants, redirectUris, tokenType, validityS }: Client) {
  return {
    name,
    grants: writtenJson('grant_types', grants),
    redirect_uris: writtenJson('redirect_uris', redirectUris),
    token_type: tokenType,
    validity_s: validityS,
  }
}
