/** Settings of broker, reports and traffic manager, from `[apim.throttling]` and its groups. */
import type { ControlPlan } from '../plan/control-messages.ts'
import { reportsToTrafficManagers } from '../plan/readiness-parts.ts'
import type { BrokerSettings } from '../events/broker.ts'
import type { ReportGroup, TrafficManagerAddress } from '../events/report-client.ts'
import type { ReceiverSettings } from '../events/report-server.ts'
import type { TlsClientPlan } from '../socket/tls.ts'
import { credentialsOrSuperAdmin } from './registry/super-admin.ts'

/** Seconds between heartbeats where `[qpid.heartbeat]` names none: a broker that is silent must be noticed. */
const HEARTBEAT_S = 5
/** AMQP counts a peer as lost after two intervals. */
const INTERVALS = 2
const BROKER_PORTS = { plain: 5672, secured: 5671 }
const RECEIVER_PORTS = { plain: 9611, secured: 9711 }
const DEFAULT_TRUST: TlsClientPlan = {
  ...{ ca: null, identity: null, hostname: 'strict', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers: '' },
}

type MessagingPlan = Pick<ControlPlan, 'configuration' | 'dataDir' | 'trust' | 'runsGateway' | 'receiver'>

interface Address extends TrafficManagerAddress {
  readonly path: string
}

function addressOf(url: string, trust: ControlPlan['trust'], ports: typeof BROKER_PORTS): Address {
  const { protocol, hostname, port, pathname } = new URL(url)
  const isSecured = protocol === 'ssl:' || protocol === 'amqps:'
  const host = hostname.replace(/^\[|\]$/g, '')
  const number = port === '' ? (isSecured ? ports.secured : ports.plain) : Number(port)
  const tls = isSecured ? (trust[`${host}:${number}`] ?? trust.default ?? DEFAULT_TRUST) : null
  return { host, port: number, tls, path: pathname }
}

/** Null: no broker is configured. */
export function brokerSettings({ configuration, dataDir, trust }: MessagingPlan): BrokerSettings | null {
  const throttling = configuration['apim.throttling']
  if (throttling.throttle_decision_endpoints.length === 0) return null
  // Keys of a group default to those of the section.
  const source = configuration['apim.throttling.url_group'][0] ?? throttling
  const given = { username: source['jms.username'], password: source['jms.password'] }
  const { delay, timeout_factor: factor } = configuration['qpid.heartbeat']
  return {
    endpoints: throttling.throttle_decision_endpoints.map(url => {
      const { path, ...address } = addressOf(url, trust, BROKER_PORTS)
      return { ...address, vhost: path === '' ? '/' : path.slice(1) || '/' }
    }),
    ...credentialsOrSuperAdmin(given, configuration, dataDir),
    heartbeatS: delay === 0 ? HEARTBEAT_S : Math.max(1, Math.round((delay * factor) / INTERVALS)),
    startDelayMs: source['jms.start_delay'],
  }
}

/** Topic of decisions and deny policies. */
export function decisionTopic({ configuration }: Pick<ControlPlan, 'configuration'>): string {
  const source = configuration['apim.throttling.url_group'][0] ?? configuration['apim.throttling']
  return source['jms.destination']
}

/** Traffic managers that get reports; empty on a node that sends none. */
export function reportGroups({ configuration, dataDir, trust, runsGateway }: MessagingPlan): readonly ReportGroup[] {
  if (!runsGateway || !reportsToTrafficManagers(configuration)) return []
  return configuration['apim.throttling.url_group'].map(group => {
    const given = { username: group.receiver_username, password: group.receiver_password }
    const members = group.traffic_manager_urls.map((url, row) => {
      const login = group.traffic_manager_auth_urls[row]!
      // Reports carry credentials: the address on TLS comes first.
      const chosen = url.startsWith('ssl:') || !login.startsWith('ssl:') ? url : login
      return addressOf(chosen, trust, RECEIVER_PORTS)
    })
    return { type: group.type, members, ...credentialsOrSuperAdmin(given, configuration, dataDir) }
  })
}

/** Null: this node receives no reports. */
export function receiverSettings({ configuration, dataDir, receiver }: MessagingPlan): ReceiverSettings | null {
  if (receiver === null) return null
  const { receiver_username: username, receiver_password: password } = configuration['apim.throttling']
  return { ...receiver, ...credentialsOrSuperAdmin({ username, password }, configuration, dataDir) }
}
