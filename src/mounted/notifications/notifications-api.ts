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
import { Dispatcher } from './dispatcher.ts'
import { ProviderFile } from './provider-file.ts'
import { Refused, refusalResponse } from './refusals.ts'
import { CHANNELS } from './sender-configuration.ts'
import { SenderRequests } from './sender-requests.ts'
import { SenderStore, type SenderTables } from './sender-store.ts'
import { readSettings } from './settings.ts'

/** As the platform names it. */
const SUPER_TENANT = 'carbon.super'

export const open: OpenMountedApi = async context => {
  const settings = readSettings(context.settings)
  const senders = await SenderStore.open(context.database<SenderTables>(), context.secrets(), settings.sendersMax)
  const providers = new ProviderFile(join(context.home, settings.providerFile), context.log)
  const dispatcher = new Dispatcher(senders, providers, settings)
  const requests = new SenderRequests(senders, dispatcher, settings)
  const api = new NotificationsApi(context.log, requests)
  return { handle: request => api.handle(request) }
}

class NotificationsApi {
  readonly #log: MountedContext['log']
  readonly #senders: SenderRequests

  constructor(log: MountedContext['log'], senders: SenderRequests) {
    this.#log = log
    this.#senders = senders
  }

  async handle(request: MountedRequest): Promise<MountedResponse> {
    try {
      return await this.#answer(request, tenantOf(request))
    } catch (error) {
      return refusalResponse(this.#refusalOf(error, request), request.correlationId)
    }
  }

  async #answer(request: MountedRequest, tenant: string): Promise<MountedResponse> {
    const [collection = '', name, action, ...rest] = request.path.split('/').slice(1)
    const channel = CHANNELS.find(channel => channel === collection)
    const response =
      channel === undefined || rest.length > 0
        ? null
        : await this.#senders.answer(request, { tenant, channel, name, action })
    if (response !== null) return response
    throw new Refused('no-resource', `${request.method} ${request.operation.template} is no operation of this API`)
  }

  #refusalOf(error: unknown, { correlationId, operation }: MountedRequest): Refused {
    if (error instanceof Refused) return error
    if (error instanceof BodyTooLong) return new Refused('too-long', 'the body of the request is longer than allowed')
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

/** That of the path; without one there, that of the caller. Throws Refused where the caller belongs to another one. */
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
