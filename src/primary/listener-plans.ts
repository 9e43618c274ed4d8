/** What a gateway listens on. */
import type { Configuration } from '../config/catalogue.ts'
import { partsOf } from './node-parts.ts'
import type { ListenerPlan } from '../plan.ts'

/** Where the keys of a listener stand. */
export const LISTENER_SECTIONS = {
  http: 'transport.passthru_http',
  https: 'transport.passthru_https',
  ws: 'transport.ws',
  wss: 'transport.wss',
} as const

const KINDS = Object.keys(LISTENER_SECTIONS) as (keyof typeof LISTENER_SECTIONS)[]

/** None on a node without a gateway. */
export function planListeners(configuration: Configuration): readonly ListenerPlan[] {
  if (!partsOf(configuration).runsGateway) return []
  return KINDS.flatMap(kind => {
    const section = configuration[LISTENER_SECTIONS[kind]]
    if (!section['listener.enable']) return []
    const port = section['listener.parameters.port']
    const withOffset = port === 0 ? 0 : port + configuration.server.offset
    return [{ kind, host: section['listener.parameters.bind_address'], port: withOffset }]
  })
}

/** Whether one of them needs certificates. */
export function listensSecured(listeners: readonly ListenerPlan[]): boolean {
  return listeners.some(({ kind }) => kind === 'https' || kind === 'wss')
}
