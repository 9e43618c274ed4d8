/**
 * Properties, `${name}` in a value: facts that only a start knows. The names after `port.management` are those of the
 * reference platform. A property that derives from a key reads that key, and inherits its errors and its secrecy.
 */
import { networkInterfaces } from 'node:os'
import type { ReferencedValue } from './references.ts'

/** Absolute paths that a start knows. */
export interface Folders {
  readonly home: string
  readonly data: string
  /** Folder of `deployment.toml`. */
  readonly configuration: string
}

interface PropertySources extends Folders {
  /** The effective value of a key. Throws UnresolvedReference. */
  key(path: string): ReferencedValue
}

interface Property {
  readonly name: string
  readonly meaning: string
  readonly find: (from: PropertySources) => ReferencedValue
}

/** Ports of the traffic manager of the reference platform: events in the clear, events on TLS, its broker. */
const RECEIVER_PORT = 9611
const SECURED_RECEIVER_PORT = 9711
const BROKER_PORT = 5672

const HTTP = 'transport.passthru_http.listener.parameters.port'
const MANAGEMENT = 'management.port'
const HTTPS = 'transport.passthru_https.listener.parameters.port'

function plain(value: unknown): ReferencedValue {
  return { value, secret: false }
}

/** 0 stays 0: the system chooses a free port only when the listener opens. */
function withOffset(port: ReferencedValue, { key }: PropertySources): ReferencedValue {
  const offset = key('server.offset')
  if (port.value === 0) return port
  return { value: Number(port.value) + Number(offset.value), secret: port.secret || offset.secret }
}

function portOf(path: string): Property['find'] {
  return from => withOffset(from.key(path), from)
}

function fixedPort(port: number): Property['find'] {
  return from => withOffset(plain(port), from)
}

/** `server.node_ip`, or the first address that is not loopback, IPv4 before IPv6. */
function localAddress({ key }: PropertySources): ReferencedValue {
  const named = key('server.node_ip')
  if (named.value !== '') return named
  const outward = Object.values(networkInterfaces()).flatMap(listed => listed?.filter(each => !each.internal) ?? [])
  const first = outward.find(({ family }) => family === 'IPv4') ?? outward.find(({ scopeid }) => scopeid === 0)
  return plain(first?.address ?? '127.0.0.1')
}

export const PROPERTIES: readonly Property[] = [
  { name: 'home', meaning: 'The home folder.', find: from => plain(from.home) },
  { name: 'data', meaning: 'The data folder.', find: from => plain(from.data) },
  { name: 'host', meaning: '`server.hostname`.', find: from => from.key('server.hostname') },
  {
    name: 'ip',
    meaning: '`server.node_ip`, or the first address of this machine that is not loopback.',
    find: localAddress,
  },
  { name: 'offset', meaning: '`server.offset`.', find: from => from.key('server.offset') },
  { name: 'port.http', meaning: 'Port of the plain HTTP listener, with `server.offset` added.', find: portOf(HTTP) },
  { name: 'port.https', meaning: 'Port of the HTTPS listener, with `server.offset` added.', find: portOf(HTTPS) },
  {
    name: 'port.ws',
    meaning: 'Port of the plain WebSocket listener, with `server.offset` added.',
    find: portOf('transport.ws.listener.parameters.port'),
  },
  {
    name: 'port.wss',
    meaning: 'Port of the WebSocket listener on TLS, with `server.offset` added.',
    find: portOf('transport.wss.listener.parameters.port'),
  },
  {
    name: 'port.health',
    meaning: 'Port of the health listener, with `server.offset` added.',
    find: portOf('management.health_port'),
  },
  { name: 'port.management', meaning: '`management.port`, with `server.offset` added.', find: portOf(MANAGEMENT) },
  { name: 'carbon.home', meaning: 'Same as `home`.', find: from => plain(from.home) },
  { name: 'carbon.host', meaning: 'Same as `host`.', find: from => from.key('server.hostname') },
  { name: 'carbon.local.ip', meaning: 'Same as `ip`.', find: localAddress },
  { name: 'carbon.context', meaning: '`/`: nothing is mounted below a path.', find: () => plain('/') },
  { name: 'carbon.protocol', meaning: '`https`.', find: () => plain('https') },
  { name: 'carbon.management.port', meaning: 'Same as `port.management`.', find: portOf(MANAGEMENT) },
  { name: 'mgt.transport.https.port', meaning: 'Same as `port.management`.', find: portOf(MANAGEMENT) },
  { name: 'mgt.transport.http.port', meaning: 'Same as `port.health`.', find: portOf('management.health_port') },
  { name: 'http.nio.port', meaning: 'Same as `port.http`.', find: portOf(HTTP) },
  { name: 'https.nio.port', meaning: 'Same as `port.https`.', find: portOf(HTTPS) },
  {
    name: 'receiver.url.port',
    meaning: '9611 with `server.offset` added: port at which a traffic manager receives events.',
    find: fixedPort(RECEIVER_PORT),
  },
  {
    name: 'auth.url.port',
    meaning: '9711 with `server.offset` added: the same on TLS.',
    find: fixedPort(SECURED_RECEIVER_PORT),
  },
  { name: 'jms.port', meaning: '5672 with `server.offset` added: port of its broker.', find: fixedPort(BROKER_PORT) },
  { name: 'default.server.role', meaning: '`server.server_role`.', find: from => from.key('server.server_role') },
  { name: 'admin.username', meaning: '`super_admin.username`.', find: from => from.key('super_admin.username') },
  { name: 'admin.password', meaning: '`super_admin.password`.', find: from => from.key('super_admin.password') },
]
