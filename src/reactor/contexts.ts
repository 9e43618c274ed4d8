/** Contexts of connections, one per transport (`ConnectionContext`): made at the start, changed in place by reloads. */
import { FieldKinds } from '../http1/field-kinds.ts'
import { BodySpans } from '../http1/body.ts'
import type { LivePlan, ReactorPlan } from '../plan/reactor-plan.ts'
import type { ConnectionContext, ConnectionContexts } from '../proxy/exchange/connection-context.ts'
import { ReadMemory } from '../proxy/exchange/read-buffer.ts'
import { Composer } from '../proxy/exchange/write-buffer.ts'
import { DeadlineWheel } from '../runtime/deadline-wheel.ts'
import { composerBytes, requestLimits, responseLimits, settingsOf, sizedBy, updateSettings } from './settings.ts'

/** Services of the reactor, the same for both transports. */
type Services = Pick<ConnectionContext, 'report' | 'metrics' | 'now' | 'clock' | 'tunnels' | 'dateLine'>

/** `tickMs`: resolution of the deadlines. */
export function newContexts(
  { http, https, responseTimeoutMs, pseudonym, callToken }: ReactorPlan,
  services: Services,
  tickMs: number,
): ConnectionContexts {
  const settings = settingsOf(http, http, responseTimeoutMs)
  const ofSecured = settingsOf(https, http, responseTimeoutMs)
  const { correlationField } = settings
  const { trailerHeads, ...sizes } = sizedBy(settings)
  const trailers = trailerHeads.scratch
  const memory = new ReadMemory(http.io_buffer_size)
  const plain: ConnectionContext = {
    settings,
    ...sizes,
    trailerHeads,
    memory,
    composer: new Composer(composerBytes(settings, ofSecured)),
    wheel: new DeadlineWheel(tickMs),
    requestKinds: new FieldKinds(correlationField),
    responseKinds: new FieldKinds(correlationField),
    part: { spans: new BodySpans(), count: 0, floor: 0, last: false, trailers, buffer: null as never },
    ...services,
    ...{ pseudonym, callToken },
    isDraining: false,
    keepsIdle: false,
  }
  const ofTls = { settings: ofSecured, ...sizedBy(ofSecured), memory: new ReadMemory(https.io_buffer_size, memory) }
  return { plain, secured: { ...plain, ...ofTls } }
}

/** Applies a reload: open connections read the new values from the same objects. */
export function updateContexts({ plain, secured }: ConnectionContexts, live: LivePlan): void {
  const { http, https, responseTimeoutMs } = live
  for (const [context, section] of [
    [plain, http],
    [secured, https],
  ] as const) {
    const { settings, requestLimits: ofRequests, responseLimits: ofResponses } = context
    updateSettings(settings, section, http, responseTimeoutMs)
    Object.assign(ofRequests, requestLimits(settings))
    Object.assign(ofResponses, responseLimits(settings))
  }
}
