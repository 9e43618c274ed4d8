/** Requests about senders: the collection of a channel, one sender, its dry run and its test. */
import type { Outbox } from '../../delivery/outbox.ts'
import type { MountedRequest, MountedResponse } from '../interface.ts'
import type { Dispatcher } from './dispatcher.ts'
import { shownRequest } from './dry-run.ts'
import { readEvent } from './notification-event.ts'
import { json, Refused } from './refusals.ts'
import { jsonOf } from './request-body.ts'
import { type Channel, masked, representation } from './sender-configuration.ts'
import { readSender } from './sender-request.ts'
import type { SenderStore } from './sender-store.ts'
import type { NotificationSettings } from './settings.ts'

const BODY_BYTES_MAX = 131_072
const TEST_MS = 30_000
/** Test messages of one tenant and thread at once: each keeps a permit until its provider answers. */
const TESTS_MAX = 4
/** Stands for the id of a delivery in dry runs. */
const SAMPLE_ID = '00000000-0000-7000-8000-000000000000'

interface SenderTarget {
  readonly tenant: string
  readonly channel: Channel
  readonly name: string | undefined
  /** Segment behind the name. */
  readonly action: string | undefined
}

export class SenderRequests {
  readonly #senders: SenderStore
  readonly #dispatcher: Dispatcher
  readonly #outbox: Outbox
  readonly #settings: NotificationSettings
  /** By tenant. */
  readonly #tests = new Map<string, number>()

  constructor(senders: SenderStore, dispatcher: Dispatcher, outbox: Outbox, settings: NotificationSettings) {
    this.#senders = senders
    this.#outbox = outbox
    this.#dispatcher = dispatcher
    this.#settings = settings
  }

  /** Null: there is no such operation. Rejects with Refused, and errors of the database. */
  async answer(request: MountedRequest, target: SenderTarget): Promise<MountedResponse | null> {
    const { tenant, channel, name, action } = target
    if (name === undefined) {
      if (request.method === 'POST') return this.#create(request, tenant, channel)
      if (request.method !== 'GET') return null
      return json(200, (await this.#senders.list(tenant, channel)).map(representation))
    }
    switch (`${request.method} ${action ?? ''}`) {
      case 'GET ':
        return json(200, representation(await this.#senders.show(tenant, channel, name)))
      case 'PUT ':
        return this.#replace(request, tenant, channel, name)
      case 'DELETE ':
        return this.#remove(request, tenant, channel, name)
      case 'POST dry-run':
        return this.#dryRun(request, tenant, channel, name)
      case 'POST test':
        return this.#test(request, tenant, channel, name)
      default:
        return null
    }
  }

  async #create(request: MountedRequest, tenant: string, channel: Channel): Promise<MountedResponse> {
    const sender = readSender(channel, await jsonOf(request, BODY_BYTES_MAX), null)
    this.#dispatcher.check(sender)
    await this.#senders.create(tenant, { ...this.#settings.streams[channel], type: channel }, sender)
    return json(201, representation(sender), [['Location', `${request.url}/${channel}/${sender.name}`]])
  }

  async #replace(request: MountedRequest, tenant: string, channel: Channel, name: string): Promise<MountedResponse> {
    const body = await jsonOf(request, BODY_BYTES_MAX)
    const sender = await this.#senders.update(tenant, channel, name, stored => {
      const changed = readSender(channel, body, stored)
      this.#dispatcher.check(changed)
      return changed
    })
    return json(200, representation(sender))
  }

  /** With `force=true` what waits for the sender becomes dead letters. */
  async #remove(request: MountedRequest, tenant: string, channel: Channel, name: string): Promise<MountedResponse> {
    await this.#senders.show(tenant, channel, name)
    if (new URLSearchParams(request.query).get('force') !== 'true') {
      const counts = await this.#outbox.counts(tenant)
      const waiting = counts.find(({ sender }) => sender.channel === channel && sender.name === name)?.waiting ?? 0
      if (waiting > 0)
        throw new Refused('in-use', `${waiting} events wait for the sender: force=true makes them dead letters`)
    }
    const isRemoved = await this.#senders.remove(tenant, channel, name)
    await this.#outbox.senderDeleted({ tenant, channel, name })
    if (isRemoved) return { status: 204 }
    throw new Refused('no-sender', `the tenant has no sender ${name} of this channel`)
  }

  async #dryRun(request: MountedRequest, tenant: string, channel: Channel, name: string): Promise<MountedResponse> {
    const event = readEvent(await jsonOf(request, this.#settings.eventBytesMax), channel)
    const sender = masked(await this.#senders.find(tenant, channel, name))
    return json(200, shownRequest(this.#dispatcher.message(sender, event, SAMPLE_ID)))
  }

  async #test(request: MountedRequest, tenant: string, channel: Channel, name: string): Promise<MountedResponse> {
    const event = readEvent(await jsonOf(request, this.#settings.eventBytesMax), channel)
    await this.#senders.show(tenant, channel, name)
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TEST_MS)])
    this.#beginTest(tenant)
    try {
      const result = await this.#dispatcher.attempt(
        { tenant, channel, name },
        event,
        { id: crypto.randomUUID(), claimedAt: performance.now() },
        signal,
      )
      const isDelivered = result.kind === 'delivered'
      return json(200, { delivered: isDelivered, detail: isDelivered ? result.detail : result.cause })
    } finally {
      this.#endTest(tenant)
    }
  }

  #beginTest(tenant: string): void {
    const count = this.#tests.get(tenant) ?? 0
    if (count >= TESTS_MAX) {
      throw new Refused('too-many-tests', `at most ${TESTS_MAX} at once`, [['Retry-After', '5']])
    }
    this.#tests.set(tenant, count + 1)
  }

  #endTest(tenant: string): void {
    const count = this.#tests.get(tenant) ?? 0
    if (count > 1) this.#tests.set(tenant, count - 1)
    else this.#tests.delete(tenant)
  }
}
