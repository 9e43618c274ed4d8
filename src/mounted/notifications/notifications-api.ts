/**
 * The notification-senders API as a mounted module (`sluice:notification-senders`): senders of tenants, events that
 * they turn into messages, and what became of these. `settings.ts` has its settings.
 */
import { join } from 'node:path'
import { ConnectionUnavailable } from '../../database/connection-pool.ts'
import { isDatabaseError, isUnreachable, messageOf } from '../../database/driver-errors.ts'
import {
  BodyTooLong,
  type MountedContext,
  type MountedRequest,
  type MountedResponse,
  type OpenMountedApi,
} from '../interface.ts'
import { DeliveryRun } from '../../delivery/delivery-run.ts'
import { Outbox, type OutboxOptions } from '../../delivery/outbox.ts'
import { Dispatcher } from './dispatcher.ts'
import { EventRequests } from './event-requests.ts'
import type { NotificationEvent } from './notification-event.ts'
import { ProviderFile } from './provider-file.ts'
import { Refused, refusalResponse } from './refusals.ts'
import { CHANNELS } from './sender-configuration.ts'
import { SenderRequests } from './sender-requests.ts'
import { SecretsUnreadable, SenderStore, type SenderTables } from './sender-store.ts'
import { type NotificationSettings, readSettings } from './settings.ts'

/** As the platform names it. */
const SUPER_TENANT = 'carbon.super'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export const open: OpenMountedApi = async context => {
  const settings = readSettings(context.settings)
  const database = context.database<SenderTables>()
  const secrets = context.secrets()
  const senders = await SenderStore.open(database, secrets, settings.sendersMax)
  const providers = new ProviderFile(join(context.home, settings.providerFile), context.log)
  const dispatcher = new Dispatcher(senders, providers, settings)
  const outbox = await Outbox.open(database, { ...outboxOptions(settings), cipher: secrets })
  const requests = new SenderRequests(senders, dispatcher, outbox, settings)
  const api = new NotificationsApi(context.log, requests, new EventRequests(senders, outbox, settings, context.wake))
  const run = new DeliveryRun({
    outbox,
    log: context.log,
    pace: sender => dispatcher.pace(sender),
    schedule: { attemptsMax: settings.attemptsMax, ageMsMax: settings.giveUpHours * HOUR_MS },
    compose: ({ sender, event, id }, signal, claimedAt) =>
      dispatcher.attempt(sender, JSON.parse(event) as NotificationEvent, { id, claimedAt }, signal),
  })
  return { handle: request => api.handle(request), work: run }
}

function outboxOptions(settings: NotificationSettings): OutboxOptions {
  const { eventBytesMax, sendersMax, waitingPerSenderMax, waitingPerTenantMax, waitingMax } = settings
  const { deliveredDays, deliveredMax, deadDays, deadMax } = settings
  return {
    limits: {
      eventBytesMax,
      orderDeliveriesMax: sendersMax,
      senderWaitingMax: waitingPerSenderMax,
      tenantWaitingMax: waitingPerTenantMax,
      allWaitingMax: waitingMax,
    },
    retention: { deliveredMs: deliveredDays * DAY_MS, deliveredMax, deadMs: deadDays * DAY_MS, deadMax },
  }
}

class NotificationsApi {
  readonly #log: MountedContext['log']
  readonly #senders: SenderRequests
  readonly #events: EventRequests

  constructor(log: MountedContext['log'], senders: SenderRequests, events: EventRequests) {
    this.#log = log
    this.#senders = senders
    this.#events = events
  }

  async handle(request: MountedRequest): Promise<MountedResponse> {
    try {
      return await this.#answer(request, tenantOf(request))
    } catch (error) {
      return refusalResponse(this.#refusalOf(error, request), request.correlationId)
    }
  }

  async #answer(request: MountedRequest, tenant: string): Promise<MountedResponse> {
    const segments = request.path.split('/').slice(1)
    const [collection, name, action] = segments
    const channel = CHANNELS.find(channel => channel === collection)
    const response =
      channel === undefined
        ? await this.#events.answer(request, tenant, segments)
        : segments.length > 3
          ? null
          : await this.#senders.answer(request, { tenant, channel, name, action })
    if (response !== null) return response
    throw new Refused('no-resource', `${request.method} ${request.operation.template} is no operation of this API`)
  }

  #refusalOf(error: unknown, { correlationId, operation }: MountedRequest): Refused {
    if (error instanceof Refused) return error
    if (error instanceof BodyTooLong) return new Refused('too-long', 'the body of the request is longer than allowed')
    if (error instanceof SecretsUnreadable) return new Refused('unreadable', error.message)
    const isDatabase = isDatabaseError(error)
    const cause = isDatabase ? messageOf(error) : placeOf(error)
    const subject = { OPERATION: `${operation.verb} ${operation.template}`, CORRELATION_ID: correlationId }
    this.#log('error', 'notification request failed', { ...subject, CAUSE: cause })
    if (error instanceof ConnectionUnavailable || (isDatabase && isUnreachable(error))) {
      return new Refused('unavailable', 'try again', [['Retry-After', '1']])
    }
    return new Refused('failed', 'the event log of the gateway has the reason')
  }
}

/** Class and place of an error that is a bug: its message may hold text of a client. */
function placeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no error was thrown'
  return `${error.name} ${
    error.stack
      ?.split('\n')
      .find(line => /^\s+at /.test(line))
      ?.trim() ?? ''
  }`
}

/** Returns the tenant of the path, else that of the caller. Throws Refused where the caller belongs to another one. */
function tenantOf({ variables, caller }: MountedRequest): string {
  const tenant = variables.tenant ?? caller.tenant
  if (tenant !== caller.tenant || tenant === '') {
    throw new Refused('other-tenant', 'the tenant of the path is not the tenant of the token')
  }
  if (tenant === SUPER_TENANT) {
    throw new Refused('super-tenant', `${SUPER_TENANT} configures its mails in the deployment, not in this API`)
  }
  return tenant
}
