/** Stores OAuth clients and what they registered (RFC 7591); authenticates them. Secrets are stored as hashes. */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { ChangeLog } from './change-log.ts'
import type { TokenStore } from './token-store.ts'
import type { Database, DatabaseTransaction } from './database.ts'
import type { Client, ClientRegistration } from './entities.ts'
import { missingRefusal, requireName, existsRefusal, jsonText } from './field-validation.ts'
import { hashPassword, type VerifiedSecretCache } from './password-hash.ts'
import { clientOf, type ClientRow, registrationOf } from './tables.ts'

interface ClientStoreOptions {
  readonly changes: ChangeLog
  readonly tokens: TokenStore
  readonly secrets: VerifiedSecretCache
  readonly nowMs: () => number
}

const KEY_BYTES = 20
const SECRET_BYTES = 32

export class ClientStore {
  readonly #database: Database
  readonly #changes: ChangeLog
  readonly #tokens: TokenStore
  readonly #nowMs: () => number
  readonly #secrets: VerifiedSecretCache

  constructor(database: Database, { changes, tokens, secrets, nowMs }: ClientStoreOptions) {
    this.#database = database
    this.#changes = changes
    this.#tokens = tokens
    this.#secrets = secrets
    this.#nowMs = nowMs
  }

  async get(consumerKey: string): Promise<Client | null> {
    const row = await this.#row(consumerKey)
    return row === undefined ? null : clientOf(row)
  }

  async listForApplication(applicationId: string): Promise<readonly Client[]> {
    const rows = await this.#database.read(db => {
      const clients = db.selectFrom('sluice_clients').selectAll().where('application_id', '=', applicationId)
      return clients.orderBy('created_ms').orderBy('consumer_key').execute()
    })
    return rows.map(clientOf)
  }

  /** Takes the same time for unknown clients. Null for wrong secrets and for public clients. */
  async authenticate(consumerKey: string, secret: string): Promise<Client | null> {
    const row = await this.#row(consumerKey)
    const phc = row?.secret_hash ?? ''
    const { isCorrect, isOutdated } = await this.#secrets.verify(consumerKey, secret, phc)
    if (!isCorrect || row === undefined) return null
    if (isOutdated) await this.#replaceHash(consumerKey, phc, await hashPassword(secret))
    return clientOf(row)
  }

  /**
   * The secret is returned here and never again; '' for a public client. With `registration` so is the registration
   * access token (RFC 7592 1.2). Refused where the application has a key of this type.
   */
  async create(
    given: Omit<Client, 'consumerKey'> & { readonly consumerKey?: string },
    registration: Pick<ClientRegistration, 'authMethod' | 'logoutUris'> | null = null,
  ): Promise<{ readonly client: Client; readonly secret: string; readonly registrationToken: string }> {
    const registrationToken = registration === null ? '' : newSecret()
    const client = { ...given, consumerKey: given.consumerKey ?? randomBytes(KEY_BYTES).toString('base64url') }
    requireName('client_id', client.consumerKey)
    requireName('client_name', client.name)
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
      ...columnsOf(client),
    }
    await this.#changes.transaction(
      async (transaction, logChange) => {
        const { applicationId } = client
        if (applicationId !== null) await lockApplication(transaction, applicationId)
        await transaction.insertInto('sluice_clients').values(row).execute()
        if (applicationId !== null) await requireOnlyKey(transaction, applicationId, client.keyType)
        if (registration !== null) {
          const about = { consumer_key: client.consumerKey, token_hash: digestOf(registrationToken) }
          const values = { ...about, created_ms: row.created_ms, ...registrationColumns(registration) }
          await transaction.insertInto('sluice_client_registrations').values(values).execute()
        }
        if (applicationId !== null) logChange('key', client.consumerKey)
      },
      {
        unique: () => existsRefusal('a client with this key', 'client_id'),
        reference: () => missingRefusal('application', 'applicationId'),
      },
    )
    return { client: clientOf(row), secret, registrationToken }
  }

  /** Null for a client that was not registered by RFC 7591. */
  async registration(consumerKey: string): Promise<ClientRegistration | null> {
    const row = await this.#registrationRow(consumerKey)
    return row === undefined ? null : registrationOf(row)
  }

  /** The client of a registration access token; null for any other token. */
  async findByRegistrationToken(consumerKey: string, token: string) {
    const row = await this.#registrationRow(consumerKey)
    const isRight = timingSafeEqual(Buffer.from(row?.token_hash ?? digestOf('')), Buffer.from(digestOf(token)))
    const client = row === undefined || !isRight ? null : await this.get(consumerKey)
    return client === null ? null : { client, registration: registrationOf(row!) }
  }

  async updateRegistration(
    consumerKey: string,
    registration: Pick<ClientRegistration, 'authMethod' | 'logoutUris'>,
  ): Promise<void> {
    await this.#database.transaction(async transaction => {
      const change = transaction.updateTable('sluice_client_registrations').set(registrationColumns(registration))
      await change.where('consumer_key', '=', consumerKey).execute()
    })
  }

  async update(
    consumerKey: string,
    change: Partial<Pick<Client, 'name' | 'grants' | 'redirectUris' | 'validityS' | 'tokenType'>>,
  ): Promise<Client> {
    if (change.name !== undefined) requireName('client_name', change.name)
    return this.#changes.transaction(async transaction => {
      const clients = transaction.selectFrom('sluice_clients').selectAll().where('consumer_key', '=', consumerKey)
      const row = await clients.executeTakeFirst()
      if (row === undefined) throw missingRefusal('client')
      const columns = columnsOf({ ...clientOf(row), ...change })
      await transaction.updateTable('sluice_clients').set(columns).where('consumer_key', '=', consumerKey).execute()
      return clientOf({ ...row, ...columns })
    })
  }

  /**
   * Assigns a client without an application to one. Refused where the client has an application, or the application a
   * key of this type.
   */
  async mapToApplication(consumerKey: string, applicationId: string, keyType: Client['keyType']): Promise<Client> {
    return this.#changes.transaction(
      async (transaction, logChange) => {
        await lockApplication(transaction, applicationId)
        const change = transaction
          .updateTable('sluice_clients')
          .set({ application_id: applicationId, key_type: keyType })
        const free = change.where('consumer_key', '=', consumerKey).where('application_id', 'is', null)
        const { numUpdatedRows } = await free.executeTakeFirstOrThrow()
        const clients = transaction.selectFrom('sluice_clients').selectAll().where('consumer_key', '=', consumerKey)
        const row = await clients.executeTakeFirst()
        if (row === undefined) throw missingRefusal('client')
        if (numUpdatedRows === 0n) throw existsRefusal('an application of this client', 'consumerKey')
        await requireOnlyKey(transaction, applicationId, keyType)
        logChange('key', consumerKey)
        return clientOf(row)
      },
      { reference: () => missingRefusal('application', 'applicationId') },
    )
  }

  /** Returns the new secret; '' for a public client. */
  async renewSecret(consumerKey: string): Promise<string> {
    const client = await this.get(consumerKey)
    if (client === null) throw missingRefusal('client')
    if (client.isPublic) return ''
    const secret = newSecret()
    const secret_hash = await hashPassword(secret)
    await this.#database.transaction(async transaction => {
      const change = transaction.updateTable('sluice_clients').set({ secret_hash })
      const { numUpdatedRows } = await change.where('consumer_key', '=', consumerKey).executeTakeFirstOrThrow()
      if (numUpdatedRows === 0n) throw missingRefusal('client')
    })
    return secret
  }

  /** Removes the client and revokes its tokens. */
  async remove(consumerKey: string): Promise<void> {
    await this.#changes.transaction(async (transaction, logChange) => {
      const removal = transaction.deleteFrom('sluice_clients').where('consumer_key', '=', consumerKey)
      const { numDeletedRows } = await removal.executeTakeFirstOrThrow()
      if (numDeletedRows === 0n) throw missingRefusal('client')
      logChange('key', consumerKey)
    })
    await this.#tokens.revoke({ consumerKey })
  }

  #registrationRow(consumerKey: string) {
    return this.#database.read(db =>
      db
        .selectFrom('sluice_client_registrations')
        .selectAll()
        .where('consumer_key', '=', consumerKey)
        .executeTakeFirst(),
    )
  }

  #row(consumerKey: string): Promise<ClientRow | undefined> {
    return this.#database.read(db =>
      db.selectFrom('sluice_clients').selectAll().where('consumer_key', '=', consumerKey).executeTakeFirst(),
    )
  }

  async #replaceHash(consumerKey: string, phc: string, secret_hash: string): Promise<void> {
    await this.#database.transaction(async transaction => {
      const change = transaction
        .updateTable('sluice_clients')
        .set({ secret_hash })
        .where('consumer_key', '=', consumerKey)
      // Keeps a hash that was changed meanwhile.
      await change.where('secret_hash', '=', phc).execute()
    })
  }
}

/**
 * Locks the application until the transaction ends, so that nodes add its keys one at a time. The lock comes before the
 * first read: MySQL reads as of that time.
 */
async function lockApplication(transaction: DatabaseTransaction, applicationId: string): Promise<void> {
  const application = transaction.updateTable('sluice_applications').where('id', '=', applicationId)
  await application.set(it => ({ tier: it.ref('tier') })).execute()
}

/** Throws RegistryRefusal where the application has a further key of the type that was just added. */
async function requireOnlyKey(
  transaction: DatabaseTransaction,
  applicationId: string,
  keyType: Client['keyType'],
): Promise<void> {
  const keys = transaction.selectFrom('sluice_clients').select('consumer_key').where('key_type', '=', keyType)
  const found = await keys.where('application_id', '=', applicationId).limit(2).execute()
  if (found.length > 1) throw existsRefusal(`a ${keyType} key of the application`, 'keyType')
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}

function digestOf(token: string): string {
  return hash('sha256', token, 'base64url')
}

function registrationColumns({ authMethod, logoutUris }: Pick<ClientRegistration, 'authMethod' | 'logoutUris'>) {
  return { auth_method: authMethod, logout_uris: jsonText('post_logout_redirect_uris', logoutUris) }
}

function columnsOf({ name, grants, redirectUris, tokenType, validityS }: Client) {
  return {
    name,
    grants: jsonText('grant_types', grants),
    redirect_uris: jsonText('redirect_uris', redirectUris),
    token_type: tokenType,
    validity_s: validityS,
  }
}
