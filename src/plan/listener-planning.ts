/** Plans the listeners of a gateway: the four of the reference platform, each under its own section. */
import type { Configuration } from '../config/catalogue.ts'
import { nodeComponents } from './node-components.ts'
import type { ListenerPlan } from './reactor-plan.ts'

/** Section of each listener. */
export const LISTENER_SECTIONS = {
  http: 'transport.passthru_http',
  https: 'transport.passthru_https',
  ws: 'transport.ws',
  wss: 'transport.wss',
} as const

const KINDS = Object.keys(LISTENER_SECTIONS) as (keyof typeof LISTENER_SECTIONS)[]

/** Empty on a node without a gateway. */
export function planListeners(configuration: Configuration): readonly ListenerPlan[] {
  if (!nodeComponents(configuration).runsGateway) return []
  return KINDS.flatMap(kind => {
    const section = configuration[LISTENER_SECTIONS[kind]]
    if (!section['listener.enable']) return []
    const port = section['listener.parameters.port']
    const withOffset = port === 0 ? 0 : port + configuration.server.offset
    const networks = section['listener.proxy_protocol.networks']
    const proxies = section['listener.proxy_protocol.enable'] ? networks : null
    return [{ kind, host: section['listener.parameters.bind_address'], port: withOffset, proxies }]
  })
}

/** True if a listener needs certificates. */
export function hasTlsListener(listeners: readonly ListenerPlan[]): boolean {
  return listeners.some(({ kind }) => kind === 'https' || kind === 'wss')
}
