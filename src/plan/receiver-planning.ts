/** The listener at which a traffic manager receives reports of gateways. */
import type { Configuration } from '../config/catalogue.ts'
import type { TlsIdentity, TlsProtocolSettings } from '../socket/tls.ts'
import type { TlsPlans } from '../tls/tls-material.ts'
import { nodeComponents } from './node-components.ts'
import type { ListenAddress } from './ports.ts'

const RECEIVER_PORT = 9711
const KEY = 'apim.throttling.receiver_url'

export interface ReceiverPlan {
  /** '' for all addresses. */
  readonly host: string
  readonly port: number
  /** Null: without TLS. */
  readonly tls: (TlsProtocolSettings & { readonly identity: TlsIdentity }) | null
}

/**
 * Null: this node receives no reports. A traffic manager always listens, by default at 9711 and `server.offset`; a node
 * that runs other parts too listens where `receiver_url` is set.
 */
export function receiverAddress(
  configuration: Configuration,
): (ListenAddress & { readonly isSecured: boolean }) | null {
  const { receiver_url: url } = configuration['apim.throttling']
  const { role, runsTrafficManager } = nodeComponents(configuration)
  if (!runsTrafficManager || (url === '' && role !== 'traffic-manager')) return null
  if (url === '') return { host: '', port: RECEIVER_PORT + configuration.server.offset, key: KEY, isSecured: true }
  const { protocol, hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  return {
    host: host === '0.0.0.0' || host === '::' ? '' : host,
    port: port === '' ? RECEIVER_PORT + configuration.server.offset : Number(port),
    key: KEY,
    isSecured: protocol === 'ssl:',
  }
}

/** `tls`: null on a node without TLS listeners. */
export function receiverPlan(configuration: Configuration, tls: TlsPlans | null): ReceiverPlan | null {
  const address = receiverAddress(configuration)
  if (address === null) return null
  const { host, port, isSecured } = address
  if (!isSecured) return { host, port, tls: null }
  const server = tls?.server
  if (server === null || server === undefined) return null
  const { identity, minVersion, maxVersion, ciphers } = server
  return { host, port, tls: { identity, minVersion, maxVersion, ciphers } }
}
