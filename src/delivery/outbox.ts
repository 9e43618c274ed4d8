/**
 * Events that wait for their delivery, in a database. Each thread has its own outbox over the same tables. All methods
 * reject with errors of the driver.
 */
import { DeliveryCounts } from '../observe/delivery-counts.ts'
import { type AcceptLimits, Acceptor } from './acceptance.ts'
import { orphan } from './claims.ts'
import { DatabaseClock, type OutboxClock } from './database-clock.ts'
import type {
  Acceptance,
  AcceptOrder,
  DeadLetters,
  Delivery,
  DeliveryFilter,
  DeliveryPage,
  SenderCounts,
  SenderId,
} from './delivery.ts'
import type { EventCipher } from './event-cipher.ts'
import { type DeliveryArea, type OutboxConnection, type OutboxDatabase, openOutboxTables } from './outbox-schema.ts'
import { readCounts } from './sender-rows.ts'
import {
  dropDeadLetters,
  expire,
  listPage,
  type PageRange,
  readDelivery,
  replayDeadLetters,
  type Retention,
} from './stored-deliveries.ts'

export interface OutboxOptions {
  readonly limits?: Partial<AcceptLimits>
  readonly retention?: Partial<Retention>
  /** `platform` for the platform's own mails; left out for deliveries of tenants. */
  readonly area?: DeliveryArea
  /** Encrypts events; null: they are stored as they are. */
  readonly cipher?: EventCipher | null
  /** In place of those of the process. */
  readonly counts?: DeliveryCounts
  /** In place of the clock of the database. */
  readonly clock?: OutboxClock
}

const DEFAULT_LIMITS: AcceptLimits = {
  eventBytesMax: 65_536,
  orderDeliveriesMax: 100,
  senderWaitingMax: 100_000,
  tenantWaitingMax: 250_000,
  allWaitingMax: 1_000_000,
}

const DAY_MS = 86_400_000
const DEFAULT_RETENTION: Retention = {
  deliveredMs: DAY_MS,
  deliveredMax: 100_000,
  deadMs: 30 * DAY_MS,
  deadMax: 100_000,
}

/** Rows that one call of `expire` removes, about. */
const EXPIRED_MAX = 5000

export class Outbox {
  /** For runs. */
  readonly connection: OutboxConnection
  readonly clock: OutboxClock
  readonly #limits: AcceptLimits
  readonly #retention: Retention
  readonly #acceptor: Acceptor

  private constructor(connection: OutboxConnection, { limits, retention, clock }: OutboxOptions) {
    this.connection = connection
    this.clock = clock ?? new DatabaseClock(connection)
    this.#limits = { ...DEFAULT_LIMITS, ...limits }
    this.#retention = { ...DEFAULT_RETENTION, ...retention }
    this.#acceptor = new Acceptor(connection, this.clock, this.#limits)
  }

  /** Creates or migrates the tables. Rejects with MigrationLocked or NewerTables besides. */
  static async open<Tables>(database: OutboxDatabase<Tables>, options: OutboxOptions = {}): Promise<Outbox> {
    const { area = 'deliveries', cipher = null, counts = DeliveryCounts.ofProcess() } = options
    return new Outbox(await openOutboxTables(database, { area, cipher, counts }), options)
  }

  /** Resolves when deliveries are durable, or none is stored. After an error, an order with a key may be repeated. */
  accept(order: AcceptOrder): Promise<Acceptance> {
    return this.#acceptor.accept(order)
  }

  list(filter: DeliveryFilter, range: PageRange): Promise<DeliveryPage> {
    return listPage(this.connection, filter, range)
  }

  get(tenant: string, id: string): Promise<Delivery | undefined> {
    return readDelivery(this.connection, tenant, id)
  }

  /** Dead letters wait again without attempts, as many as the limits of waiting events allow. Their number. */
  async replay(letters: DeadLetters): Promise<number> {
    return replayDeadLetters(this.connection, letters, await this.clock.read(), this.#limits)
  }

  /** The number of dead letters that are gone. */
  drop(letters: DeadLetters): Promise<number> {
    return dropDeadLetters(this.connection, letters)
  }

  /** `tenant`: null for all. */
  counts(tenant: string | null): Promise<readonly SenderCounts[]> {
    return readCounts(this.connection, tenant)
  }

  /** Makes dead letters of the deliveries that wait; one that is being sent goes on. Resolves with their number. */
  async senderDeleted(sender: SenderId): Promise<number> {
    return orphan(this.connection, sender, await this.clock.read())
  }

  /** Removes what retention no longer keeps. True where there is more of it. */
  async expire(): Promise<boolean> {
    const nowMs = await this.clock.read()
    const terms = { nowMs, isAged: this.clock.isTrusted(), most: EXPIRED_MAX }
    return (await expire(this.connection, this.#retention, terms)) >= EXPIRED_MAX
  }
}
