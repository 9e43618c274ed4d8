/** Senders of tenants in the database; their secrets are encrypted. */
import { sql, type Transaction } from 'kysely'
import { LRUCache } from 'lru-cache'
import { type Migration, migrateTables } from '../../database/migrations.ts'
import { growingTo } from '../../runtime/lru-options.ts'
import type { MountedDatabase, MountedSecrets } from '../interface.ts'
import type { StreamId } from './notification-event.ts'
import { Refused } from './refusals.ts'
import { type Channel, isSecretField, isSecretProperty, type SenderConfiguration } from './sender-configuration.ts'

export interface SenderTables {
  readonly notification_senders: SenderRow
}

interface SenderRow {
  tenant: string
  channel: string
  name: string
  /** The stream that its publisher picks events from. */
  stream_name: string
  stream_version: string
  type: string
  /** JSON: what everybody may read who may read the sender. */
  configuration: string
  /** JSON of the same form, encrypted; '' without secrets. */
  secrets: string
  updated_ms: number
}

/** JSON of fields and properties. */
interface StoredValues {
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly properties: readonly (readonly [key: string, value: string])[]
}

interface ReadSender {
  readonly row: Pick<SenderRow, 'configuration' | 'secrets'>
  readonly configuration: SenderConfiguration
}

/** A sender that was read for a message. */
interface KnownSender {
  /** When the reading began (`performance.now()`). */
  readonly readAt: number
  readonly reading: Promise<ReadSender>
}

/** Senders that a thread remembers; the one that was not used for the longest time is read again. */
const KNOWN_MAX = 256
/** A message that was claimed before its sender was changed may be made of the sender as it was so long ago. */
const KNOWN_MS = 1000

/** The node has another encryption key than the one that encrypted the secrets. */
export class SecretsUnreadable extends Error {
  override readonly name = 'SecretsUnreadable'

  constructor(name: string) {
    super(`the secrets of ${name} were encrypted with another key: restore encryption.key, or give them again`)
  }
}

const V1: Migration = ({ text, table }) =>
  table('notification_senders', [
    'tenant varchar(255) not null',
    'channel varchar(16) not null',
    'name varchar(100) not null',
    'stream_name varchar(255) not null',
    'stream_version varchar(255) not null',
    'type varchar(16) not null',
    `configuration ${text} not null`,
    `secrets ${text} not null`,
    'updated_ms bigint not null',
    'primary key (tenant, channel, name)',
  ])

export class SenderStore {
  readonly #database: MountedDatabase<SenderTables>
  readonly #secrets: MountedSecrets
  readonly #sendersMax: number
  /** By channel, tenant and name. */
  readonly #known = new LRUCache<string, KnownSender>(growingTo(KNOWN_MAX))

  private constructor(database: MountedDatabase<SenderTables>, secrets: MountedSecrets, sendersMax: number) {
    this.#database = database
    this.#secrets = secrets
    this.#sendersMax = sendersMax
  }

  /** `sendersMax`: of one tenant and channel. Creates or migrates the table. Rejects with errors of the database. */
  static async open(
    database: MountedDatabase<SenderTables>,
    secrets: MountedSecrets,
    sendersMax: number,
  ): Promise<SenderStore> {
    await migrateTables(database.kysely, database.dialect, [{ part: 'notifications', migrations: [V1] }])
    return new SenderStore(database, secrets, sendersMax)
  }

  /** By name, without their secrets. */
  async list(tenant: string, channel: Channel): Promise<readonly SenderConfiguration[]> {
    const rows = await this.#database.kysely
      .selectFrom('notification_senders')
      .selectAll()
      .where('tenant', '=', tenant)
      .where('channel', '=', channel)
      .execute()
    return rows.map(row => configurationOf(row, '')).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Without its secrets. Rejects with Refused where there is none. */
  async show(tenant: string, channel: Channel, name: string): Promise<SenderConfiguration> {
    return configurationOf(found(await rowOf(this.#database.kysely, tenant, channel, name), name), '')
  }

  /** With its secrets. Rejects with Refused where there is none, and with SecretsUnreadable. */
  async find(tenant: string, channel: Channel, name: string): Promise<SenderConfiguration> {
    return this.#whole(found(await rowOf(this.#database.kysely, tenant, channel, name), name))
  }

  /**
   * As `find`, for a message that was claimed at `claimedAt` (`performance.now()`): what was read since then is used
   * again for a moment. The claim of an event comes after the event was stored or replayed. So a change of the sender
   * before that is seen, whichever thread or node has made it.
   */
  async findForClaim(tenant: string, channel: Channel, name: string, claimedAt: number): Promise<SenderConfiguration> {
    const key = JSON.stringify([channel, tenant, name])
    const known = this.#known.get(key)
    const now = performance.now()
    if (known !== undefined && known.readAt >= claimedAt && now - known.readAt < KNOWN_MS) {
      return (await known.reading).configuration
    }
    const entry = { readAt: now, reading: this.#read(rowOf(this.#database.kysely, tenant, channel, name), name, known) }
    this.#known.set(key, entry)
    try {
      return (await entry.reading).configuration
    } catch (error) {
      if (this.#known.get(key) === entry) this.#known.delete(key)
      throw error
    }
  }

  /** `known`: an earlier reading; what has not changed since is not decrypted again. */
  async #read(
    reading: Promise<SenderRow | undefined>,
    name: string,
    known: KnownSender | undefined,
  ): Promise<ReadSender> {
    const row = found(await reading, name)
    const before = await known?.reading.catch(() => undefined)
    // Encryption is never the same twice, so equal texts are one version.
    const isSame = before?.row.secrets === row.secrets && before.row.configuration === row.configuration
    return isSame ? before : { row, configuration: this.#whole(row) }
  }

  /** Names of the senders that pick events from the stream. */
  async namesOf(tenant: string, { streamName, version, type }: StreamId): Promise<readonly string[]> {
    const rows = await this.#database.kysely
      .selectFrom('notification_senders')
      .select('name')
      .where('tenant', '=', tenant)
      .where('channel', '=', type)
      .where('stream_name', '=', streamName)
      .where('stream_version', '=', version)
      .where('type', '=', type)
      .execute()
    return rows.map(({ name }) => name).toSorted()
  }

  /** Deploys the publisher of a sender. Rejects with Refused: the name is taken, or there are too many. */
  async create(tenant: string, stream: StreamId, configuration: SenderConfiguration): Promise<void> {
    const { channel, name } = configuration
    const { streamName, version, type } = stream
    const values = this.#valuesOf(tenant, configuration)
    const key = { tenant, channel, name, stream_name: streamName, stream_version: version, type }
    try {
      await this.#database.transaction(async transaction => {
        const { count } = await transaction
          .selectFrom('notification_senders')
          .select(sql<number | bigint | string>`count(*)`.as('count'))
          .where('tenant', '=', tenant)
          .where('channel', '=', channel)
          .executeTakeFirstOrThrow()
        if ((await rowOf(transaction, tenant, channel, name)) !== undefined) throw taken(name)
        if (Number(count) >= this.#sendersMax) {
          throw new Refused('too-many-senders', `a tenant has at most ${this.#sendersMax} senders of a channel`)
        }
        await transaction
          .insertInto('notification_senders')
          .values({ ...key, ...values })
          .execute()
      })
    } catch (error) {
      throw this.#database.isDuplicate(error) ? taken(name) : error
    }
  }

  /**
   * Replaces a sender by what `change` makes of it, which may run several times. Secrets that this node cannot decrypt
   * are missing in `stored`. Rejects with Refused where there is none, and with what `change` throws.
   */
  update(
    tenant: string,
    channel: Channel,
    name: string,
    change: (stored: SenderConfiguration) => SenderConfiguration,
  ): Promise<SenderConfiguration> {
    return this.#database.transaction(async transaction => {
      const isLocked = this.#database.dialect !== 'sqlite'
      const row = found(await rowOf(transaction, tenant, channel, name, isLocked), name)
      const configuration = change(configurationOf(row, this.#secretsOf(row) ?? ''))
      await transaction
        .updateTable('notification_senders')
        .set(this.#valuesOf(tenant, configuration))
        .where('tenant', '=', tenant)
        .where('channel', '=', channel)
        .where('name', '=', name)
        .execute()
      return configuration
    })
  }

  /** Undeploys the publisher. False where there is none. */
  async remove(tenant: string, channel: Channel, name: string): Promise<boolean> {
    const { numDeletedRows } = await this.#database.kysely
      .deleteFrom('notification_senders')
      .where('tenant', '=', tenant)
      .where('channel', '=', channel)
      .where('name', '=', name)
      .executeTakeFirstOrThrow()
    return numDeletedRows > 0n
  }

  #valuesOf(tenant: string, { channel, name, fields, properties }: SenderConfiguration) {
    const part = (isSecret: boolean): StoredValues => ({
      fields: [...fields].filter(([field]) => isSecretField(field) === isSecret),
      properties: [...properties].filter(([key]) => isSecretProperty(key) === isSecret),
    })
    const secret = part(true)
    const hasSecrets = secret.fields.length + secret.properties.length > 0
    return {
      configuration: JSON.stringify(part(false)),
      secrets: hasSecrets ? this.#secrets.encrypt(JSON.stringify(secret), contextOf(tenant, channel, name)) : '',
      updated_ms: Date.now(),
    }
  }

  #whole(row: SenderRow): SenderConfiguration {
    const secrets = this.#secretsOf(row)
    if (secrets === undefined) throw new SecretsUnreadable(row.name)
    return configurationOf(row, secrets)
  }

  /** JSON; '' without secrets, undefined where another key encrypted them. */
  #secretsOf({ tenant, channel, name, secrets }: SenderRow): string | undefined {
    return secrets === '' ? '' : this.#secrets.decrypt(secrets, contextOf(tenant, channel, name))
  }
}

type Connection = MountedDatabase<SenderTables>['kysely'] | Transaction<SenderTables>

function rowOf(
  db: Connection,
  tenant: string,
  channel: Channel,
  name: string,
  isLocked = false,
): Promise<SenderRow | undefined> {
  const select = db
    .selectFrom('notification_senders')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('channel', '=', channel)
    .where('name', '=', name)
  return (isLocked ? select.forUpdate() : select).executeTakeFirst()
}

function found(row: SenderRow | undefined, name: string): SenderRow {
  if (row === undefined) throw new Refused('no-sender', `the tenant has no sender ${name} of this channel`)
  return row
}

function taken(name: string): Refused {
  return new Refused('exists', `the tenant has a sender ${name} of this channel`)
}

/** Encrypted secrets decrypt for their own sender only. */
function contextOf(tenant: string, channel: string, name: string): string {
  return `notification sender ${channel}/${name} of ${tenant}`
}

function configurationOf({ channel, name, configuration }: SenderRow, secrets: string): SenderConfiguration {
  const open = JSON.parse(configuration) as StoredValues
  const secret: StoredValues = secrets === '' ? { fields: [], properties: [] } : (JSON.parse(secrets) as StoredValues)
  return {
    channel: channel as Channel,
    name,
    fields: new Map([...open.fields, ...secret.fields]),
    properties: new Map([...open.properties, ...secret.properties]),
  }
}
