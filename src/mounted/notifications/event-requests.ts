/** Requests about events and what became of them: publishes, reads deliveries, replays and drops dead letters. */
import type { AcceptRefusal, Acceptance, Delivery, DeliveryFilter, DeliveryState } from '../../delivery/delivery.ts'
import type { Outbox } from '../../delivery/outbox.ts'
import type { MountedRequest, MountedResponse } from '../interface.ts'
import { type NotificationEvent, type PublishedEvent, readPublished } from './notification-event.ts'
import { json, Refused, type Situation, shown } from './refusals.ts'
import { jsonOf } from './request-body.ts'
import { CHANNELS } from './sender-configuration.ts'
import { invalid } from './sender-request.ts'
import type { SenderStore } from './sender-store.ts'
import type { NotificationSettings } from './settings.ts'

const STATES: readonly DeliveryState[] = ['waiting', 'sending', 'delivered', 'dead']
/** Parameters that name senders. */
const OF_SENDER = ['channel', 'sender']
const PAGE = { normal: 50, most: 500 }
const ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/
/** Seconds until a client that was refused by a limit should try again. */
const AGAIN_S = '5'

const REFUSALS: Readonly<
  Record<AcceptRefusal, readonly [situation: Situation, description: (limit: number) => string]>
> = {
  'event-bytes': ['too-long', limit => `an event has at most ${limit} bytes`],
  'order-deliveries': ['invalid', limit => `more than ${limit} senders pick events from the stream: name one`],
  'sender-waiting': ['sender-waiting', limit => `already ${limit} events of the sender wait for their delivery`],
  'tenant-waiting': ['tenant-waiting', limit => `already ${limit} events of the tenant wait for their delivery`],
  'all-waiting': ['all-waiting', limit => `already ${limit} events wait for their delivery`],
  'key-reused': ['key-reused', () => 'the event of the first request with this idempotency key is another one'],
  busy: ['all-waiting', limit => `already ${limit} events wait to be stored`],
}

/** Situations that pass once waiting deliveries have left. */
const FULL: ReadonlySet<Situation> = new Set<Situation>(['sender-waiting', 'tenant-waiting', 'all-waiting'])

export class EventRequests {
  readonly #senders: SenderStore
  readonly #outbox: Outbox
  readonly #settings: NotificationSettings
  readonly #wake: () => void

  constructor(senders: SenderStore, outbox: Outbox, settings: NotificationSettings, wake: () => void) {
    this.#senders = senders
    this.#outbox = outbox
    this.#settings = settings
    this.#wake = wake
  }

  /** Null: there is no such operation. `segments`: of the path. Rejects with Refused, and errors of the database. */
  async answer(request: MountedRequest, tenant: string, segments: readonly string[]): Promise<MountedResponse | null> {
    const [collection, id, action] = segments
    if (collection === 'events') {
      return request.method === 'POST' && segments.length === 1 ? this.#publish(request, tenant) : null
    }
    if (collection !== 'deliveries' || segments.length > 3) return null
    switch (`${request.method} ${id === undefined ? '' : ID.test(id) ? '{id}' : id}${action ? `/${action}` : ''}`) {
      case 'GET ':
        return this.#list(request, tenant)
      case 'DELETE ':
        return json(200, { dropped: await this.#outbox.drop(filterOf(queryOf(request, OF_SENDER), tenant)) })
      case 'POST replay':
        return this.#replayAll(request, tenant)
      case 'GET counts':
        return json(
          200,
          (await this.#outbox.counts(tenant)).map(({ sender: { channel, name }, ...counts }) => ({
            channel,
            sender: name,
            ...counts,
          })),
        )
      case 'GET {id}':
        return json(200, whole(await this.#find(tenant, id!)))
      case 'DELETE {id}':
        return this.#drop(tenant, id!)
      case 'POST {id}/replay':
        return this.#replay(tenant, id!)
      default:
        if (id === undefined || action !== undefined) return null
        throw new Refused('no-delivery', `the tenant has no delivery ${shown(id)}`)
    }
  }

  async #publish(request: MountedRequest, tenant: string): Promise<MountedResponse> {
    const { eventBytesMax, streams } = this.#settings
    const body = await jsonOf(request, 2 * eventBytesMax)
    const published = readPublished(body, streams, request.field('idempotency-key'))
    const names = await this.#sendersOf(tenant, published)
    const channel = published.stream.type
    const event = JSON.stringify(published.event)
    const deliveries = names.map(name => ({ sender: { tenant, channel, name }, event }))
    // The senders of the stream may have changed since the first request.
    const content = JSON.stringify([published.stream, published.sender, event])
    const acceptance = await this.#outbox.accept({ tenant, key: published.idempotencyKey, content, deliveries })
    const { ids, senders } = acceptedOf(acceptance)
    this.#wake()
    return json(202, { deliveries: ids.map((id, index) => ({ id, channel, sender: senders[index]!.name })) })
  }

  async #sendersOf(tenant: string, { stream, sender, event }: PublishedEvent): Promise<readonly string[]> {
    const all = await this.#senders.namesOf(tenant, stream)
    const names = sender === null ? all : all.filter(name => name === sender)
    if (names.length === 0) {
      const { streamName, version, type } = stream
      const which = sender === null ? 'no sender' : `no sender ${shown(sender)}`
      throw new Refused('no-sender', `${which} picks events of type ${type} from ${shown(`${streamName}:${version}`)}`)
    }
    if (event.recipient !== '') return names
    for (const name of names) {
      const { properties } = await this.#senders.show(tenant, stream.type, name)
      if (!properties.has('email.address')) throw invalid(`recipient, and email.address of ${name}, are missing`)
    }
    return names
  }

  async #list(request: MountedRequest, tenant: string): Promise<MountedResponse> {
    const query = queryOf(request, [...OF_SENDER, 'state', 'limit', 'before'])
    const state = STATES.find(state => state === query.get('state'))
    if (query.has('state') && state === undefined) throw invalid(`state is one of ${STATES.join(', ')}`)
    const limit = Number(query.get('limit') ?? PAGE.normal)
    if (!Number.isInteger(limit) || limit < 1 || limit > PAGE.most) throw invalid(`limit is from 1 to ${PAGE.most}`)
    const before = query.get('before') ?? null
    if (before !== null && !ID.test(before)) throw invalid('before is no id of a delivery')
    const filter = { ...filterOf(query, tenant), ...(state === undefined ? {} : { state }) }
    const { deliveries, next } = await this.#outbox.list(filter, { before, limit })
    if (next !== null) query.set('before', next)
    const url = next === null ? null : `${request.url}/deliveries?${query}`
    return json(200, { deliveries: deliveries.map(listed), next: url })
  }

  async #find(tenant: string, id: string): Promise<Delivery> {
    const delivery = await this.#outbox.get(tenant, id)
    if (delivery === undefined) throw new Refused('no-delivery', `the tenant has no delivery ${id}`)
    return delivery
  }

  async #drop(tenant: string, id: string): Promise<MountedResponse> {
    if ((await this.#outbox.drop({ tenant, ids: [id] })) > 0) return { status: 204 }
    const { state } = await this.#find(tenant, id)
    throw new Refused('not-dead', `the delivery is ${state}, and only dead letters are dropped`)
  }

  async #replay(tenant: string, id: string): Promise<MountedResponse> {
    const count = await this.#outbox.replay({ tenant, ids: [id] })
    const delivery = await this.#find(tenant, id)
    if (count > 0) {
      this.#wake()
      return json(202, whole(delivery))
    }
    if (delivery.state === 'dead') {
      throw new Refused('sender-waiting', 'too many events wait for their delivery', [['Retry-After', AGAIN_S]])
    }
    throw new Refused('not-dead', `the delivery is ${delivery.state}, and only dead letters are replayed`)
  }

  async #replayAll(request: MountedRequest, tenant: string): Promise<MountedResponse> {
    const replayed = await this.#outbox.replay(filterOf(queryOf(request, OF_SENDER), tenant))
    if (replayed > 0) this.#wake()
    return json(202, { replayed })
  }
}

function acceptedOf(acceptance: Acceptance): Acceptance & { readonly kind: 'accepted' } {
  if (acceptance.kind === 'accepted') return acceptance
  const [situation, description] = REFUSALS[acceptance.reason]
  const isFull = FULL.has(situation)
  throw new Refused(situation, description(acceptance.limit), isFull ? [['Retry-After', AGAIN_S]] : [])
}

function filterOf(query: URLSearchParams, tenant: string): Omit<DeliveryFilter, 'state'> {
  const [channel, name] = [query.get('channel'), query.get('sender')]
  if (channel !== null && !CHANNELS.some(each => each === channel)) {
    throw invalid(`channel is one of ${CHANNELS.join(', ')}`)
  }
  return { tenant, ...(channel === null ? {} : { channel }), ...(name === null ? {} : { name }) }
}

function queryOf({ query }: MountedRequest, known: readonly string[]): URLSearchParams {
  const parameters = new URLSearchParams(query)
  const unknown = [...parameters.keys()].find(name => !known.includes(name))
  if (unknown !== undefined) throw invalid(`${shown(unknown)} is none of the parameters ${known.join(', ')}`)
  return parameters
}

/** One that is encrypted with another key shows nothing. */
function eventOf(text: string): NotificationEvent {
  if (text !== '') return JSON.parse(text) as NotificationEvent
  return { recipient: '', text: '', isTemplate: false, subject: '', properties: {} }
}

function listed({ id, sender, state, attempts, acceptedMs, atMs, event, cause }: Delivery): object {
  const { recipient } = eventOf(event)
  const time = { waiting: 'nextAttempt', sending: 'claimedUntil', delivered: 'deliveredAt', dead: 'deadSince' }[state]
  const times = { acceptedAt: new Date(acceptedMs).toISOString(), [time]: new Date(atMs).toISOString() }
  const { channel, name } = sender
  return { id, channel, sender: name, recipient, state, attempts, ...times, detail: cause }
}

function whole(delivery: Delivery): object {
  const { text, isTemplate, subject, properties } = eventOf(delivery.event)
  const content = isTemplate ? { template: text } : { text }
  const pairs = Object.entries(properties).map(([key, value]) => ({ key, value }))
  const ofEvent = {
    ...content,
    ...(subject === '' ? {} : { subject }),
    ...(pairs.length === 0 ? {} : { properties: pairs }),
  }
  return { ...listed(delivery), event: ofEvent }
}
