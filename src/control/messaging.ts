/**
 * Messages between this node and other nodes: revoked tokens, subscriptions, policies, reports of usage, and
 * decisions of traffic managers. Loaded only where a broker, a traffic manager or a receiver is configured.
 */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { RevocationRecord, SubscriptionUpdate } from '../auth/records.ts'
import { NOTHING_REMOVED } from '../auth/records.ts'
import { RevokedTokens, SKEW_MAX_MS } from '../auth/revoked-tokens.ts'
import { Broker, type BrokerMessage } from '../events/broker.ts'
import {
  type Decision,
  decisionMessage,
  denyMessage,
  NOTIFICATIONS,
  type Notification,
  readDecision,
  readDeny,
  readNotification,
  readRevocation,
  REVOCATIONS,
  revocationMessage,
  SYNCHRONISATION,
} from '../events/messages.ts'
import { ReportClient } from '../events/report-client.ts'
import { ReportServer } from '../events/report-server.ts'
import { TrafficManager } from '../events/traffic-manager.ts'
import type { EventLog } from '../observe/events.ts'
import { METRIC, MetricsColumn } from '../observe/metrics.ts'
import type { ControlPlan } from '../plan/control-messages.ts'
import type { UsageRow } from '../throttle/cluster-limits.ts'
import { CounterFile, restoreCounters } from '../throttle/counter-file.ts'
import { CounterListing } from '../throttle/counter-listing.ts'
import { CounterTable } from '../throttle/counter-table.ts'
import type { DenyPolicy, PolicySet } from '../throttle/policy.ts'
import { brokerSettings, decisionTopic, receiverSettings, reportGroups } from './messaging-settings.ts'

/** Everything that a key manager knows of callers and policies. */
export interface SharedState {
  readonly revoked: readonly RevocationRecord[]
  readonly subscriptions: SubscriptionUpdate
  readonly policies: PolicySet | null
}

export interface MessagingContext {
  readonly report: EventLog['report']
  /** Null on a node without a key manager. */
  readonly state: (() => Promise<SharedState>) | null
  decided(decisions: readonly Decision[]): void
  revoked(tokens: readonly RevocationRecord[]): void
  subscriptionsChanged(update: SubscriptionUpdate): void
  /** Replaces every application, key and subscription of key managers by what these updates make in their order. */
  subscriptionsReplaced(updates: readonly SubscriptionUpdate[]): void
  policiesChanged(set: PolicySet): void
}

/** In the data folder. */
const COUNTERS_FILE = 'traffic-counters'
/** Owner number in the table of the thread that follows the counters; the traffic manager has 1. */
const COUNTERS_OWNER = 2
/** Records of one message of a snapshot. */
const RECORDS_PER_MESSAGE = 2000
/** Key managers whose snapshots come at once. */
const SNAPSHOTS_MAX = 16
/** How long a worker that starts waits for the snapshot of a key manager. */
const FIRST_SNAPSHOT_MS = 2000
const NOTHING: SubscriptionUpdate = { applications: [], keys: [], subscriptions: [], removed: NOTHING_REMOVED }

export class Messaging {
  readonly #plan: ControlPlan
  readonly #context: MessagingContext
  readonly #metrics: MetricsColumn
  readonly #node = randomUUID()
  readonly #tellsRevocations: boolean
  /** Milliseconds for which a revocation waits for receivers. */
  readonly #revocationTtlMs: number
  #broker: Broker | null = null
  #reports: ReportClient | null = null
  #server: ReportServer | null = null
  /** Counters of the traffic manager; null without one, and without `enable_persistence`. */
  #counters: CounterFile | null = null
  /** Revocations that were published or heard: neither is repeated. */
  readonly #revoked = new RevokedTokens(SKEW_MAX_MS)
  /** Snapshots that are under way, by the key manager that sends them. */
  readonly #snapshots = new Map<string, SubscriptionUpdate[]>()
  readonly #firstSnapshot = Promise.withResolvers<void>()
  #denied: readonly DenyPolicy[] = []

  private constructor(plan: ControlPlan, context: MessagingContext) {
    this.#plan = plan
    this.#context = context
    this.#metrics = new MetricsColumn(plan.metrics, plan.column)
    const revocation = plan.configuration['apim.token.revocation']
    this.#tellsRevocations = revocation.enable_realtime_notifier
    this.#revocationTtlMs = revocation['realtime_notifier.ttl']
  }

  /** Rejects where the receiver cannot listen. Neither broker nor traffic manager has to answer. */
  static async open(plan: ControlPlan, context: MessagingContext): Promise<Messaging> {
    const messaging = new Messaging(plan, context)
    try {
      await messaging.#open()
      return messaging
    } catch (error) {
      await messaging.close()
      throw error
    }
  }

  async #open(): Promise<void> {
    const { report } = this.#context
    const metrics = this.#metrics
    const broker = brokerSettings(this.#plan)
    if (broker !== null) {
      this.#broker = new Broker(broker, this.#node, { report, metrics })
      this.#subscribe(this.#broker)
    }
    const groups = reportGroups(this.#plan)
    if (groups.length > 0) this.#reports = new ReportClient(groups, { report, metrics, node: this.#node })
    const receiver = receiverSettings(this.#plan)
    if (receiver !== null) {
      if (receiver.password === '') throw new Error('receiver_password is empty: set it, or super_admin.password')
      const { 'counters.max': counters } = this.#plan.configuration['apim.throttling']
      const decide = (decision: Decision): void =>
        this.#broker?.publish(decisionTopic(this.#plan), decisionMessage(decision))
      const manager = new TrafficManager(this.#openCounters(counters), { metrics, wallMs: Date.now, decide })
      this.#server = new ReportServer(receiver, { report, metrics, receive: got => manager.receive(got) })
      const port = await this.#server.listen()
      report('info', 'traffic manager listening', { RECEIVER_PORT: port, TLS: receiver.tls === null ? 'no' : 'yes' })
    }
    this.#broker?.start(() => this.#connected())
    // A worker knows no subscription before; without an answer it starts with what its files declare.
    if (broker !== null && broker.startDelayMs === 0 && this.#isWorker) {
      const timer = setTimeout(() => this.#firstSnapshot.resolve(), FIRST_SNAPSHOT_MS)
      await this.#firstSnapshot.promise
      clearTimeout(timer)
    }
  }

  /** Memory of the traffic manager's counters, which their file follows where `enable_persistence` is set. */
  #openCounters(capacity: number): SharedArrayBuffer {
    const { dataDir, configuration } = this.#plan
    if (!configuration['apim.throttling'].enable_persistence) return CounterTable.allocate(capacity)
    const { report } = this.#context
    const FILE = join(dataDir, COUNTERS_FILE)
    const { memory, damage } = restoreCounters(FILE, capacity, COUNTERS_OWNER)
    if (damage !== '') report('warn', 'counters of the last run are lost in part', { FILE, CAUSE_OF_ERROR: damage })
    this.#counters = new CounterFile(
      FILE,
      new CounterListing(new CounterTable(memory, Date.now, COUNTERS_OWNER)),
      cause => {
        if (cause === '') report('info', 'counters are written again', { FILE })
        else report('error', 'counters cannot be written; a restart would lose them', { FILE, CAUSE_OF_ERROR: cause })
      },
    )
    this.#counters.open()
    return memory
  }

  async close(): Promise<void> {
    this.#reports?.close()
    await this.closeReceiver()
    await this.#broker?.close()
  }

  /** Ends the connections of gateways, which connect again to the process that takes over. */
  async closeReceiver(): Promise<void> {
    const server = this.#server
    this.#server = null
    await server?.close()
    await this.#counters?.close()
  }

  /** Adds what a reactor has let pass to the next report. */
  reportUsage(rows: readonly UsageRow[]): void {
    this.#reports?.add(rows)
  }

  /** Tells the other nodes of revoked tokens, each once. */
  publishRevoked(tokens: readonly RevocationRecord[]): void {
    const ttlMs = this.#revocationTtlMs
    for (const token of tokens) {
      if (!this.#revoked.add([token], Date.now()) || !this.#tellsRevocations) continue
      this.#broker?.publish(REVOCATIONS, revocationMessage(token, randomUUID(), ttlMs), { ttlMs })
    }
  }

  publishSubscriptions(update: SubscriptionUpdate): void {
    this.#broker?.publish(NOTIFICATIONS, { type: 'SUBSCRIPTIONS', update } satisfies Notification)
  }

  /** Policies as a whole, and each deny policy that has changed. */
  publishPolicies(set: PolicySet): void {
    if (this.#broker === null) return
    this.#broker.publish(NOTIFICATIONS, { type: 'POLICIES', set } satisfies Notification)
    const before = new Map(this.#denied.map(policy => [policy.id, JSON.stringify(policy)]))
    for (const policy of set.denied) {
      if (before.get(policy.id) !== JSON.stringify(policy)) this.#broker.publish(this.#topic, denyMessage(policy))
    }
    const left = new Set(set.denied.map(({ id }) => id))
    for (const policy of this.#denied) {
      if (!left.has(policy.id)) this.#broker.publish(this.#topic, denyMessage(policy, 'delete'))
    }
    this.#denied = set.denied
  }

  get #topic(): string {
    return decisionTopic(this.#plan)
  }

  /** A gateway that knows applications from key managers of other nodes. */
  get #isWorker(): boolean {
    return this.#plan.runsGateway && this.#context.state === null
  }

  #subscribe(broker: Broker): void {
    const { runsGateway, configuration } = this.#plan
    const knowsCallers = runsGateway || this.#context.state !== null
    if (knowsCallers) broker.subscribe(REVOCATIONS, ({ body }) => this.#heardRevoked([readRevocation(body)]))
    if (runsGateway && configuration['apim.throttling'].enable_decision_connection) {
      broker.subscribe(this.#topic, ({ body }) => this.#heardDecision(body))
    }
    if (this.#isWorker) broker.subscribe(NOTIFICATIONS, message => this.#heardNotification(message))
    if (this.#context.state !== null) broker.subscribe(SYNCHRONISATION, message => void this.#answer(message))
  }

  /** With each connection: whatever was said while there was none is asked for. */
  #connected(): void {
    this.#snapshots.clear()
    if (this.#isWorker) this.#broker?.publish(SYNCHRONISATION, { type: 'SNAPSHOT' }, { replies: true })
    // Workers that were connected all the time may have missed what happened at a key manager that was not.
    else if (this.#context.state !== null)
      this.#broker?.publish(NOTIFICATIONS, { type: 'CONNECTED' } satisfies Notification)
  }

  #heardRevoked(tokens: readonly RevocationRecord[]): void {
    const unknown = tokens.filter(token => this.#revoked.add([token], Date.now()))
    if (unknown.length > 0) this.#context.revoked(unknown)
  }

  #heardDecision(body: unknown): void {
    const decision = readDecision(body)
    if (decision !== null) {
      this.#metrics.add(METRIC.throttleDecisionsReceived, 1)
      this.#context.decided([decision])
      return
    }
    const denied = readDeny(body)
    if (denied === null || !this.#isWorker) return
    const others = this.#policies.denied.filter(({ id }) => id !== denied.policy.id)
    this.#replacePolicies({
      policies: this.#policies.policies,
      denied: denied.isRemoved ? others : [...others, denied.policy],
    })
  }

  /** Policies of the key managers, on a gateway-worker. */
  #policies: PolicySet = { policies: [], denied: [] }

  #replacePolicies(set: PolicySet): void {
    if (JSON.stringify(set) === JSON.stringify(this.#policies)) return
    this.#policies = set
    this.#context.policiesChanged(set)
  }

  #heardNotification({ body, origin }: BrokerMessage): void {
    const heard = readNotification(body)
    if (heard.type === 'REVOCATIONS') this.#heardRevoked(heard.tokens)
    else if (heard.type === 'POLICIES') this.#replacePolicies(heard.set)
    else if (heard.type === 'CONNECTED') this.#connected()
    else if (heard.type === 'RESET') {
      if (this.#snapshots.size < SNAPSHOTS_MAX) this.#snapshots.set(origin, [])
    } else if (heard.type === 'COMPLETE') this.#completed(origin)
    else if (heard.type === 'RECORDS') this.#snapshots.get(origin)?.push(heard.update)
    else {
      // A change behind the snapshot of its key manager, whose parts are still on their way.
      this.#snapshots.get(origin)?.push(heard.update)
      this.#context.subscriptionsChanged(heard.update)
    }
  }

  #completed(origin: string): void {
    const updates = this.#snapshots.get(origin)
    if (updates === undefined) return
    this.#snapshots.delete(origin)
    this.#context.subscriptionsReplaced(updates)
    this.#firstSnapshot.resolve()
  }

  /** Sends everything to a worker that asks. */
  async #answer(question: BrokerMessage): Promise<void> {
    try {
      const { revoked, subscriptions, policies } = await this.#context.state!()
      const say = (notification: Notification): void => this.#broker?.answer(question, NOTIFICATIONS, notification)
      say({ type: 'RESET' })
      for (const tokens of parts(revoked)) say({ type: 'REVOCATIONS', tokens })
      const { applications, keys, subscriptions: rows } = subscriptions
      for (const part of parts(applications)) say({ type: 'RECORDS', update: { ...NOTHING, applications: part } })
      for (const part of parts(keys)) say({ type: 'RECORDS', update: { ...NOTHING, keys: part } })
      for (const part of parts(rows)) say({ type: 'RECORDS', update: { ...NOTHING, subscriptions: part } })
      if (policies !== null) say({ type: 'POLICIES', set: policies })
      say({ type: 'COMPLETE' })
    } catch (error) {
      const CAUSE_OF_ERROR = (error as Error).message
      this.#context.report('error', 'a gateway-worker gets no snapshot', { CAUSE_OF_ERROR })
    }
  }
}

function parts<T>(rows: readonly T[]): readonly (readonly T[])[] {
  const count = Math.ceil(rows.length / RECORDS_PER_MESSAGE)
  return Array.from({ length: count }, (_, at) => rows.slice(at * RECORDS_PER_MESSAGE, (at + 1) * RECORDS_PER_MESSAGE))
}
