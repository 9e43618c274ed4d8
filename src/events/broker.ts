/**
 * Client of a message broker (AMQP 0-9-1), with one connection to the first endpoint that answers. Subscriptions
 * survive a reconnect; the queue of messages that the broker has to confirm is bounded. Nothing waits for it.
 */
import type { ChannelModel, ConfirmChannel, ConsumeMessage, SocketOptions } from 'amqplib'
import { METRIC, type MetricsColumn } from '../observe/metrics.ts'
import type { EventLog } from '../observe/events.ts'
import type { TlsClientPlan } from '../socket/tls.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { tlsOptions } from './tls-options.ts'

interface BrokerEndpoint {
  readonly host: string
  readonly port: number
  readonly vhost: string
  /** Null: without TLS. */
  readonly tls: TlsClientPlan | null
}

export interface BrokerSettings {
  /** In the order in which they are tried; at least one. */
  readonly endpoints: readonly BrokerEndpoint[]
  readonly username: string
  readonly password: string
  /** Seconds between heartbeats; a broker that is silent for two of them is lost. */
  readonly heartbeatS: number
  /** Milliseconds before the first connection. */
  readonly startDelayMs: number
}

interface BrokerContext {
  readonly report: EventLog['report']
  readonly metrics: Pick<MetricsColumn, 'add'>
}

/** A message as a subscriber gets it. */
export interface BrokerMessage {
  readonly topic: string
  readonly body: unknown
  /** Identity of the node that has sent it. */
  readonly origin: string
  /** Where an answer goes; '' for none. */
  readonly replyTo: string
}

interface Outgoing {
  readonly exchange: string
  readonly key: string
  readonly topic: string
  readonly content: Buffer
  /** Milliseconds for which it waits for receivers; 0: without an end. */
  readonly ttlMs: number
  /** Receivers may answer. */
  readonly replies: boolean
}

interface BrokerTimes {
  readonly connectMs: number
  readonly pauseMs: number
  readonly pauseMsMax: number
}

/** The exchange of every topic; each broker of AMQP 0-9-1 has it. */
const EXCHANGE = 'amq.topic'
/** Messages that wait for the broker; beyond them the oldest is dropped. */
const OUTGOING_MAX = 10_000
/** Messages that the broker may confirm later. */
const UNCONFIRMED_MAX = 256
/** Messages that the broker keeps for a node that reads slowly; beyond them the oldest is dropped. */
const INCOMING_MAX = 100_000
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024
const CLOSE_MS = 1000
/** The error of amqplib for a message that the broker does not take. */
const REFUSED = 'message nacked'
/** An answer waits no longer for a node that has gone. */
const ANSWER_MS = 60_000
const TIMES: BrokerTimes = { connectMs: 5000, pauseMs: 200, pauseMsMax: 10_000 }

export class Broker {
  readonly #settings: BrokerSettings
  readonly #context: BrokerContext
  readonly #origin: string
  readonly #times: BrokerTimes
  readonly #topics = new Map<string, (message: BrokerMessage) => void>()
  /** Called with each new connection, behind its subscriptions. */
  #connected: () => void = () => {}
  #outgoing: Outgoing[] = []
  readonly #unconfirmed = new Set<Outgoing>()
  #model: ChannelModel | null = null
  #channel: ConfirmChannel | null = null
  #replyQueue = ''
  #timer: NodeJS.Timeout | undefined
  #pauseMs: number
  #next = 0
  /** `lost`: the outage has its log line; the next one follows a connection. */
  #phase: 'connecting' | 'up' | 'lost' | 'closed' = 'connecting'

  /** `origin`: identity of this node in its messages. `times`: for tests. */
  constructor(settings: BrokerSettings, origin: string, context: BrokerContext, times: Partial<BrokerTimes> = {}) {
    this.#settings = settings
    this.#context = context
    this.#origin = origin
    this.#times = { ...TIMES, ...times }
    this.#pauseMs = this.#times.pauseMs
  }

  get isUp(): boolean {
    return this.#channel !== null
  }

  /** Hears the messages of a topic that other nodes publish. Only before `start`. */
  subscribe(topic: string, receive: (message: BrokerMessage) => void): void {
    this.#topics.set(topic, receive)
  }

  /** Connects after the start delay and stays connected. `connected`: asks for what may have been missed. */
  start(connected: () => void): void {
    this.#connected = connected
    this.#context.metrics.add(METRIC.brokerDown, 1)
    this.#retryIn(this.#settings.startDelayMs)
  }

  /** Sends to every subscriber of a topic. A message waits while there is no connection. */
  publish(topic: string, body: object, options: { readonly ttlMs?: number; readonly replies?: boolean } = {}): void {
    const { ttlMs = 0, replies = false } = options
    this.#enqueue({ exchange: EXCHANGE, key: topic, topic, content: encoded(body), ttlMs, replies })
  }

  /** Sends to the node that has asked, as a message of a topic that the node hears. */
  answer({ replyTo }: BrokerMessage, topic: string, body: object): void {
    if (replyTo === '') return
    this.#enqueue({ exchange: '', key: replyTo, topic, content: encoded(body), ttlMs: ANSWER_MS, replies: false })
  }

  async close(): Promise<void> {
    this.#phase = 'closed'
    clearTimeout(this.#timer)
    const model = this.#model
    const channel = this.#channel
    if (channel !== null) await within(channel.waitForConfirms(), CLOSE_MS)
    if (this.#channel === null) this.#context.metrics.add(METRIC.brokerDown, -1)
    this.#model = null
    this.#channel = null
    if (model !== null) await endOf(model)
  }

  #retryIn(ms: number): void {
    if (this.#phase === 'closed') return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#connect(), ms)
  }

  async #connect(): Promise<void> {
    const { endpoints } = this.#settings
    const endpoint = endpoints[this.#next % endpoints.length]!
    try {
      await this.#open(endpoint)
      this.#pauseMs = this.#times.pauseMs
      this.#context.report('info', 'broker connected', { TARGET_HOST: endpoint.host, TARGET_PORT: endpoint.port })
    } catch (error) {
      this.#lost(endpoint, error as Error)
    }
  }

  async #open(endpoint: BrokerEndpoint): Promise<void> {
    const { connectMs } = this.#times
    const late = () => new Error(`no answer within ${connectMs} ms`)
    const connecting = this.#dial(endpoint)
    let model: ChannelModel
    try {
      model = await withTimeout(connecting, connectMs, late)
    } catch (error) {
      // A connection that opens too late is closed again.
      connecting.then(endOf, () => {})
      throw error
    }
    model.on('error', () => {})
    try {
      const channel = await withTimeout(model.createConfirmChannel(), connectMs, late)
      channel.on('error', () => {})
      await withTimeout(this.#consume(channel), connectMs, late)
      if (this.#phase === 'closed') throw new Error('closed')
      this.#attach(endpoint, model, channel)
    } catch (error) {
      await endOf(model)
      throw error
    }
  }

  async #dial({ host, port, vhost, tls }: BrokerEndpoint): Promise<ChannelModel> {
    const { connect } = await import('amqplib')
    const { username, password, heartbeatS: heartbeat } = this.#settings
    const protocol = tls === null ? 'amqp' : 'amqps'
    const socket: SocketOptions = {
      ...{ timeout: this.#times.connectMs, noDelay: true },
      ...(tls === null ? {} : tlsOptions(tls)),
    }
    return connect({ protocol, hostname: host, port, vhost, username, password, heartbeat }, socket)
  }

  /** A queue of this node alone; the broker removes it with the connection. */
  async #consume(channel: ConfirmChannel): Promise<void> {
    const { queue } = await channel.assertQueue('', {
      exclusive: true,
      autoDelete: true,
      arguments: { 'x-max-length': INCOMING_MAX, 'x-overflow': 'drop-head' },
    })
    for (const topic of this.#topics.keys()) await channel.bindQueue(queue, EXCHANGE, topic)
    await channel.consume(queue, message => this.#receive(channel, message), { noAck: true })
    this.#replyQueue = queue
  }

  #attach(endpoint: BrokerEndpoint, model: ChannelModel, channel: ConfirmChannel): void {
    this.#model = model
    this.#channel = channel
    this.#phase = 'up'
    const lost = (cause?: Error): void => {
      if (this.#model === model) this.#lost(endpoint, cause ?? new Error('the broker has closed the connection'))
    }
    model.on('close', lost)
    channel.on('close', () => lost())
    this.#context.metrics.add(METRIC.brokerDown, -1)
    // Events that were not confirmed are sent again: a receiver knows repeated ones.
    this.#outgoing = [...this.#unconfirmed, ...this.#outgoing]
    this.#unconfirmed.clear()
    this.#connected()
    this.#flush()
  }

  #lost({ host, port }: BrokerEndpoint, cause: Error): void {
    const model = this.#model
    if (this.#channel !== null) this.#context.metrics.add(METRIC.brokerDown, 1)
    this.#model = null
    this.#channel = null
    if (model !== null) void endOf(model)
    if (this.#phase === 'closed') return
    this.#next++
    this.#context.metrics.add(METRIC.brokerFailures, 1)
    if (this.#phase !== 'lost') {
      const fields = { TARGET_HOST: host, TARGET_PORT: port, CAUSE_OF_ERROR: cause.message }
      this.#context.report('error', 'broker lost; messages wait until it answers', fields)
    }
    this.#phase = 'lost'
    const isRound = this.#next % this.#settings.endpoints.length === 0
    this.#retryIn(isRound ? this.#pauseMs : 0)
    if (isRound) this.#pauseMs = Math.min(2 * this.#pauseMs, this.#times.pauseMsMax)
  }

  #receive(channel: ConfirmChannel, message: ConsumeMessage | null): void {
    if (this.#channel !== null && this.#channel !== channel) return
    if (message === null) {
      // The broker has removed the queue.
      void within(
        Promise.try(() => channel.close()),
        CLOSE_MS,
      )
      return
    }
    const { fields, properties, content } = message
    const origin = typeof properties.appId === 'string' ? properties.appId : ''
    if (origin === this.#origin && this.#origin !== '') return
    const topic = fields.exchange === EXCHANGE ? fields.routingKey : String(properties.type)
    const receive = this.#topics.get(topic)
    if (receive === undefined) return
    const replyTo = typeof properties.replyTo === 'string' ? properties.replyTo : ''
    try {
      if (content.length > MESSAGE_BYTES_MAX) throw new Error('the message is too long')
      receive({ topic, body: JSON.parse(content.toString()), origin, replyTo })
      this.#context.metrics.add(METRIC.brokerReceived, 1)
    } catch (error) {
      const cause = error instanceof SyntaxError ? 'the message is not JSON' : (error as Error).message
      this.#context.metrics.add(METRIC.brokerInvalid, 1)
      this.#context.report('warn', 'message of the broker not understood', { TOPIC: topic, CAUSE_OF_ERROR: cause })
    }
  }

  #enqueue(message: Outgoing): void {
    this.#outgoing.push(message)
    if (this.#outgoing.length > OUTGOING_MAX) {
      this.#outgoing.shift()
      this.#context.metrics.add(METRIC.brokerDropped, 1)
    }
    this.#flush()
  }

  #flush(): void {
    const channel = this.#channel
    if (channel === null) return
    let sent = 0
    while (sent < this.#outgoing.length && this.#unconfirmed.size < UNCONFIRMED_MAX) {
      this.#send(channel, this.#outgoing[sent++]!)
    }
    if (sent > 0) this.#outgoing.splice(0, sent)
  }

  #send(channel: ConfirmChannel, message: Outgoing): void {
    this.#unconfirmed.add(message)
    const { exchange, key, topic, content, ttlMs, replies } = message
    const options = {
      appId: this.#origin,
      contentType: 'application/json',
      type: topic,
      ...(ttlMs > 0 ? { expiration: String(ttlMs) } : {}),
      ...(replies ? { replyTo: this.#replyQueue } : {}),
    }
    try {
      channel.publish(exchange, key, content, options, (error: Error | null) => {
        // A message of a lost connection stays, and is sent again.
        const isRefused = error?.message === REFUSED
        if (this.#channel !== channel || (error && !isRefused)) return
        this.#unconfirmed.delete(message)
        this.#context.metrics.add(isRefused ? METRIC.brokerDropped : METRIC.brokerPublished, 1)
        this.#flush()
      })
    } catch {
      // The channel has closed: its event follows, and the message stays.
    }
  }
}

function encoded(body: object): Buffer {
  return Buffer.from(JSON.stringify(body))
}

async function endOf(model: ChannelModel): Promise<void> {
  // A connection that has ended throws.
  await within(
    Promise.try(() => model.close()),
    CLOSE_MS,
  )
  // A peer that does not answer would keep the socket open.
  const { stream } = model.connection as unknown as { stream?: { destroy(): void } }
  stream?.destroy()
}

/** Waits for an end that may fail or never come. */
async function within(ending: Promise<unknown>, ms: number): Promise<void> {
  ending.catch(() => {})
  await withTimeout(ending, ms, () => new Error('late')).catch(() => {})
}
