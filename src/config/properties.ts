/**
 * `${name}` in a value: what is known only when the gateway starts. The first half are names of the gateway's own, the
 * others those that files of the reference platform use. One that derives from a key goes through that key, so that it
 * has its faults, and is as secret.
 */
import { networkInterfaces } from 'node:os'
import type { Found } from './references.ts'

/** What a start knows beside the keys. */
export interface Surroundings {
  /** Absolute. */
  readonly home: string
  /** Absolute. */
  readonly data: string
  /** Where `deployment.toml` stands, absolute. */
  readonly folder: string
}

interface Sources extends Surroundings {
  /** The value of a key in force. Throws Unresolved. */
  key(path: string): Found
}

interface Property {
  readonly name: string
  readonly meaning: string
  readonly find: (from: Sources) => Found
}

/** Where the traffic manager of the reference platform receives events, plain and secured, and its broker listens. */
const RECEIVER_PORT = 9611
const SECURED_RECEIVER_PORT = 9711
const BROKER_PORT = 5672

const HTTP = 'transport.passthru_http.listener.parameters.port'
const MANAGEMENT = 'management.port'
const HTTPS = 'transport.passthru_https.listener.parameters.port'

function plain(value: unknown): Found {
  return { value, secret: false }
}

/** 0, for any free port, stays 0: which one it will be is not known yet. */
function withOffset(port: Found, { key }: Sources): Found {
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

/** `server.node_ip`, or the first address that is not of this machine alone, IPv4 before IPv6. */
function localAddress({ key }: Sources): Found {
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
  { name: 'ip', meaning: '`server.node_ip`, or the first address of this machine.', find: localAddress },
  { name: 'offset', meaning: '`server.offset`.', find: from => from.key('server.offset') },
  { name: 'port.http', meaning: 'Port of the plain listener, offset added.', find: portOf(HTTP) },
  { name: 'port.https', meaning: 'Port of the listener on TLS, offset added.', find: portOf(HTTPS) },
  {
    name: 'port.ws',
    meaning: 'Port of the plain WebSocket listener, offset added.',
    find: portOf('transport.ws.listener.parameters.port'),
  },
  {
    name: 'port.wss',
    meaning: 'Port of the WebSocket listener on TLS, offset added.',
    find: portOf('transport.wss.listener.parameters.port'),
  },
  {
    name: 'port.health',
    meaning: 'Port of the health listener, offset added.',
    find: portOf('management.health_port'),
  },
  { name: 'port.management', meaning: '`management.port`, offset added.', find: portOf(MANAGEMENT) },
  { name: 'carbon.home', meaning: 'As `home`.', find: from => plain(from.home) },
  { name: 'carbon.host', meaning: 'As `host`.', find: from => from.key('server.hostname') },
  { name: 'carbon.local.ip', meaning: 'As `ip`.', find: localAddress },
  { name: 'carbon.context', meaning: '`/`: nothing is mounted below a path.', find: () => plain('/') },
  { name: 'carbon.protocol', meaning: '`https`.', find: () => plain('https') },
  { name: 'carbon.management.port', meaning: 'As `port.management`.', find: portOf(MANAGEMENT) },
  { name: 'mgt.transport.https.port', meaning: 'As `port.management`.', find: portOf(MANAGEMENT) },
  { name: 'mgt.transport.http.port', meaning: 'As `port.health`.', find: portOf('management.health_port') },
  { name: 'http.nio.port', meaning: 'As `port.http`.', find: portOf(HTTP) },
  { name: 'https.nio.port', meaning: 'As `port.https`.', find: portOf(HTTPS) },
  {
    name: 'receiver.url.port',
    meaning: '9611, offset added: where a traffic manager receives events.',
    find: fixedPort(RECEIVER_PORT),
  },
  {
    name: 'auth.url.port',
    meaning: '9711, offset added: where it receives them on TLS.',
    find: fixedPort(SECURED_RECEIVER_PORT),
  },
  { name: 'jms.port', meaning: '5672, offset added: where its broker listens.', find: fixedPort(BROKER_PORT) },
  { name: 'default.server.role', meaning: '`server.server_role`.', find: from => from.key('server.server_role') },
  { name: 'admin.username', meaning: '`super_admin.username`.', find: from => from.key('super_admin.username') },
  { name: 'admin.password', meaning: '`super_admin.password`.', find: from => from.key('super_admin.password') },
]
