/**
 * Reads JDBC URLs strictly: one host, one database, and the properties with an effect here. TLS properties are honoured
 * or refused; other unknown properties are reported. No message contains a value, because it could be a credential.
 */
import { readFileSync } from 'node:fs'
import type { ServerSettings, ServerTlsSettings } from './database-settings.ts'

/** Texts are '' and the port is 0 where the URL omits them. */
export interface JdbcUrl extends ServerSettings {
  /** Milliseconds; 0 if omitted. */
  readonly connectMs: number
  readonly statementMs: number
  /** Properties without effect. */
  readonly ignoredProperties: readonly string[]
}

/** The error in a URL, with a hint. */
export class InvalidJdbcUrl extends Error {
  override readonly name = 'InvalidJdbcUrl'
  readonly hint: string

  constructor(message: string, hint: string) {
    super(message)
    this.hint = hint
  }
}

export type ServerKind = 'mysql' | 'postgre'
type DatabaseKind = ServerKind | 'h2'

/** How the URLs of a type begin; the first one is for hints. */
const STARTS: Readonly<Record<DatabaseKind, readonly string[]>> = {
  mysql: ['jdbc:mysql:', 'jdbc:mariadb:'],
  postgre: ['jdbc:postgresql:'],
  h2: ['jdbc:h2:'],
}

const HOST = '(?<host>[A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(?::(?<port>\\d{1,5}))?'
const FORM = new RegExp(`^jdbc:\\w+://${HOST}/(?<database>[^/?#;&]+)(?:\\?(?<properties>.*))?$`, 's')

/** IPv6 addresses are in brackets. */
const IP_ADDRESS = /^[\d.]+$|^\[/

/** Throws InvalidJdbcUrl. */
export function readJdbcUrl(kind: ServerKind, url: string): JdbcUrl {
  requireStart(kind, url)
  const { host, port = '0', database, properties: query = '' } = FORM.exec(url)?.groups ?? {}
  if (host === undefined || database === undefined) {
    throw new InvalidJdbcUrl(
      `must have the form ${STARTS[kind][0]}//<host>:<port>/<database>?<properties>`,
      'name one host, and set username and password by their keys',
    )
  }
  if (Number(port) > 65_535) throw new InvalidJdbcUrl('must have a port up to 65535', '')
  const properties = new Properties(kind, query)
  const tls = kind === 'postgre' ? postgresqlTls(properties) : mysqlTls(properties)
  // The driver would compare the certificate with localhost.
  if (kind === 'mysql' && tls?.isHostVerified === true && IP_ADDRESS.test(host)) {
    throw new InvalidJdbcUrl(
      'must name the server by its host name where TLS verifies that name',
      'write the name that the certificate has, or sslMode=VERIFY_CA',
    )
  }
  const perUnit = kind === 'postgre' ? 1000 : 1
  const schema = properties.take('currentSchema')
  if (kind === 'postgre' && !/^\w*$/.test(schema))
    throw new InvalidJdbcUrl('must have a currentSchema of letters, digits and underscores', '')
  const read = {
    host: host.replace(/^\[|\]$/g, ''),
    port: Number(port),
    database: decoded(database),
    username: properties.take('user'),
    password: properties.take('password'),
    schema,
    applicationName: kind === 'postgre' ? properties.take('ApplicationName') : '',
    tls,
    connectMs: properties.takeNumber('connectTimeout') * perUnit || properties.takeNumber('loginTimeout') * perUnit,
    statementMs: properties.takeNumber('socketTimeout') * perUnit,
  }
  return { ...read, ignoredProperties: properties.remaining() }
}

/** Throws InvalidJdbcUrl for an H2 URL that SQLite cannot replace. */
export function readEmbeddedUrl(url: string): void {
  if (url === '') return
  requireStart('h2', url)
  if (/^jdbc:h2:(?:tcp|ssl|mem|zip|nio\w*|split|retry|async|jar):/i.test(url))
    throw new InvalidJdbcUrl(
      'must name a file: h2 is the embedded database',
      'leave url empty, or choose postgre or mysql',
    )
  if (/;\s*CIPHER\s*=/i.test(url))
    throw new InvalidJdbcUrl(
      'must not request encryption, which the embedded database does not support',
      'leave CIPHER out',
    )
}

function requireStart(kind: DatabaseKind, url: string): void {
  const startsAs = (type: DatabaseKind): boolean => STARTS[type].some(start => url.toLowerCase().startsWith(start))
  if (startsAs(kind)) return
  const other = (Object.keys(STARTS) as DatabaseKind[]).find(startsAs)
  throw new InvalidJdbcUrl(
    `must begin with ${STARTS[kind].join(' or ')} where type is ${kind}`,
    other === undefined ? 'write a URL of that type' : `set type to ${other}, or write a URL of that type`,
  )
}

/** Names are case-insensitive, as in the drivers. */
class Properties {
  readonly #kind: ServerKind
  readonly #given = new Map<string, { readonly name: string; readonly value: string }>()

  constructor(kind: ServerKind, text: string) {
    this.#kind = kind
    // Documentation of the reference platform writes them escaped for XML.
    for (const pair of text.replaceAll('&amp;', '&').split('&')) {
      if (pair === '') continue
      const at = pair.indexOf('=')
      const name = decoded(at === -1 ? pair : pair.slice(0, at))
      if (!/^\w[\w.-]{0,63}$/.test(name)) throw new InvalidJdbcUrl('must have properties of the form name=value', '')
      if (this.#given.has(name.toLowerCase())) throw new InvalidJdbcUrl(`must not repeat ${name}`, 'keep one')
      this.#given.set(name.toLowerCase(), { name, value: at === -1 ? '' : decoded(pair.slice(at + 1)) })
    }
  }

  /** '' if omitted. */
  take(name: string): string {
    const { value = '' } = this.#given.get(name.toLowerCase()) ?? {}
    this.#given.delete(name.toLowerCase())
    return value
  }

  takeNumber(name: string): number {
    const value = this.take(name)
    if (value !== '' && !/^\d{1,7}$/.test(value)) throw new InvalidJdbcUrl(`must have a whole number as ${name}`, '')
    return Number(value)
  }

  /** Undefined if omitted. */
  takeFlag(name: string): boolean | undefined {
    const isGiven = this.#given.has(name.toLowerCase())
    const value = this.take(name).toLowerCase()
    if (!isGiven) return undefined
    if (value !== 'true' && value !== 'false' && value !== '')
      throw new InvalidJdbcUrl(`must have true or false as ${name}`, '')
    return value !== 'false'
  }

  /** Names of the remaining properties. Throws InvalidJdbcUrl for one that concerns TLS. */
  remaining(): readonly string[] {
    const names = Array.from(this.#given.values(), ({ name }) => name)
    const secured = names.find(name => /ssl|tls|certificate|keystore|truststore|encmode|channelbinding/i.test(name))
    if (secured !== undefined) {
      throw new InvalidJdbcUrl(
        `must not have ${secured}, which is not supported: the connection could be weaker than requested`,
        TLS_HINTS[this.#kind],
      )
    }
    return names
  }
}

/** How TLS is requested in the URL of a type. */
export const TLS_HINTS: Readonly<Record<ServerKind, string>> = {
  postgre: 'use sslmode=verify-full, and PEM files by sslrootcert, sslcert and sslkey',
  mysql: 'use sslMode=VERIFY_IDENTITY, and a PEM file of the authorities by serverSslCert',
}

/** Remedy where TLS to a server fails with this message; '' for other messages. */
export function tlsRemedy(dialect: 'mysql' | 'postgresql', message: string): string {
  const isMysql = dialect === 'mysql'
  if (/self-signed certificate|unable to (?:get|verify)/.test(message)) {
    const property = isMysql ? 'serverSslCert' : 'sslrootcert'
    return `name the PEM file of the authority that issued the certificate of the server by ${property} in the URL`
  }
  if (message.includes('altnames')) {
    const weaker = isMysql ? 'sslMode=VERIFY_CA' : 'sslmode=verify-ca'
    return `write a host that the certificate names, or ${weaker}`
  }
  if (!/does not support (?:SSL|secure) connection/.test(message)) return ''
  return `switch TLS on at the server, or leave ${isMysql ? 'sslMode' : 'sslmode'} out of the URL`
}

const VERIFIED = { isVerified: true, isHostVerified: true }

function postgresqlTls(properties: Properties): ServerTlsSettings | null {
  const ssl = properties.takeFlag('ssl')
  const mode = properties.take('sslmode').toLowerCase()
  const files = {
    authorities: pem(properties.take('sslrootcert'), 'sslrootcert'),
    certificate: pem(properties.take('sslcert'), 'sslcert'),
    key: pem(properties.take('sslkey'), 'sslkey'),
  }
  const effectiveMode = mode === '' && (ssl === true || files.authorities !== '') ? 'verify-full' : mode
  if (effectiveMode === '' || effectiveMode === 'disable') return noTls(ssl === true || files.authorities !== '')
  if (effectiveMode === 'require') return { isVerified: files.authorities !== '', isHostVerified: false, ...files }
  if (effectiveMode === 'verify-ca') return { isVerified: true, isHostVerified: false, ...files }
  if (effectiveMode === 'verify-full') return { ...VERIFIED, ...files }
  throw opportunisticMode('sslmode', 'disable, require, verify-ca or verify-full')
}

/** Modes of Connector/J and of the MariaDB connector. */
const MYSQL_MODES: Readonly<Record<string, Pick<ServerTlsSettings, 'isVerified' | 'isHostVerified'>>> = {
  required: { isVerified: false, isHostVerified: false },
  trust: { isVerified: false, isHostVerified: false },
  verify_ca: { isVerified: true, isHostVerified: false },
  verify_identity: VERIFIED,
  verify_full: VERIFIED,
}

function mysqlTls(properties: Properties): ServerTlsSettings | null {
  const [useSsl, requireSsl] = [properties.takeFlag('useSSL'), properties.takeFlag('requireSSL')]
  const verifies = properties.takeFlag('verifyServerCertificate')
  const mode = properties.take('sslMode').toLowerCase().replace('-', '_')
  const authorities = pem(properties.take('serverSslCert'), 'serverSslCert')
  const files = { authorities, certificate: '', key: '' }
  const isRequested = requireSsl === true || verifies === true || authorities !== ''
  if (mode === '') {
    if (useSsl === true || (useSsl === undefined && isRequested))
      return verifies === false ? { ...MYSQL_MODES.trust!, ...files } : { ...VERIFIED, ...files }
    return noTls(isRequested)
  }
  if (/^disabled?$/.test(mode)) return noTls(isRequested || useSsl === true)
  const known = MYSQL_MODES[mode]
  if (known === undefined) throw opportunisticMode('sslMode', 'DISABLED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY')
  if (useSsl === false || (verifies === true && !known.isVerified)) throw contradiction()
  return { ...known, ...files }
}

function noTls(isRequested: boolean): null {
  if (isRequested) throw contradiction()
  return null
}

function contradiction(): InvalidJdbcUrl {
  return new InvalidJdbcUrl('must not request TLS in one property and disable it in another', 'keep one of them')
}

function opportunisticMode(name: string, modes: string): InvalidJdbcUrl {
  return new InvalidJdbcUrl(`must not have an ${name} that allows connections without TLS`, `use ${modes}`)
}

const PEM_BYTES_MAX = 1024 * 1024

function pem(file: string, name: string): string {
  if (file === '') return ''
  try {
    const text = readFileSync(file, 'utf8')
    if (text.length <= PEM_BYTES_MAX && text.includes('-----BEGIN ')) return text
  } catch {
    // Reported below.
  }
  throw new InvalidJdbcUrl(`must have a readable PEM file as ${name}`, 'write the whole path of a PEM file')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new InvalidJdbcUrl('must not have "%" other than in an escape', 'write %25')
  }
}
