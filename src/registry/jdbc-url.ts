/**
 * JDBC URLs, read strictly: one host, one database, and of the properties those that mean something here. What asks for
 * TLS is honoured or refused, never passed over; any other property that nothing acts on is named in a warning. Nothing
 * that is said of a URL holds a value of it, because credentials may stand anywhere.
 */
import { readFileSync } from 'node:fs'
import type { ServerTerms, TlsTerms } from './database-terms.ts'

/** Texts are '' where the URL does not say, and port 0 is the usual one. */
export interface JdbcUrl extends ServerTerms {
  /** Milliseconds; 0 where the URL does not say. */
  readonly connectMs: number
  readonly statementMs: number
  /** Properties that nothing acts on. */
  readonly ignored: readonly string[]
}

/** What is wrong with a URL, and what to write instead. */
export class UnfitUrl extends Error {
  override readonly name = 'UnfitUrl'
  readonly remedy: string

  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

export type ServerKind = 'mysql' | 'postgre'

const HOST = '(?<host>[A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+\\])(?::(?<port>\\d{1,5}))?'
const FORM = new RegExp(
  `^jdbc:(?:mysql|mariadb|postgresql)://${HOST}/(?<database>[^/?#;&]+)(?:\\?(?<properties>.*))?$`,
  's',
)

/** Throws UnfitUrl. */
export function readJdbcUrl(kind: ServerKind, url: string): JdbcUrl {
  const { host, port = '0', database, properties = '' } = FORM.exec(url)?.groups ?? {}
  if (host === undefined || database === undefined) {
    throw new UnfitUrl(
      'must be jdbc:<kind>://<host>:<port>/<database>, with properties behind "?" at most',
      'name one host, and the account in username and password',
    )
  }
  if (Number(port) > 65_535) throw new UnfitUrl('must have a port up to 65535', '')
  const given = new Properties(properties)
  const tls = kind === 'postgre' ? postgresqlTls(given) : mysqlTls(given)
  const perUnit = kind === 'postgre' ? 1000 : 1
  const schema = given.take('currentSchema')
  if (kind === 'postgre' && !/^\w*$/.test(schema)) throw new UnfitUrl('must name one plain currentSchema', '')
  const read = {
    host: host.replace(/^\[|\]$/g, ''),
    port: Number(port),
    database: decoded(database),
    username: given.take('user'),
    password: given.take('password'),
    schema,
    applicationName: kind === 'postgre' ? given.take('ApplicationName') : '',
    tls,
    connectMs: given.takeNumber('connectTimeout') * perUnit || given.takeNumber('loginTimeout') * perUnit,
    statementMs: given.takeNumber('socketTimeout') * perUnit,
  }
  return { ...read, ignored: given.left() }
}

/** Throws UnfitUrl for an embedded database of another nature than the one that there is. */
export function readEmbeddedUrl(url: string): void {
  if (/^jdbc:h2:(?:tcp|ssl|mem|zip|nio\w*|split|retry|async|jar):/i.test(url))
    throw new UnfitUrl('must be a file: h2 is the embedded database', 'leave url empty, or choose postgre or mysql')
  if (/;\s*CIPHER\s*=/i.test(url))
    throw new UnfitUrl('must not ask for encryption, which the embedded database lacks', 'leave CIPHER out')
}

/** Names are compared without regard to case, as the drivers do. */
class Properties {
  readonly #given = new Map<string, { readonly name: string; readonly value: string }>()

  constructor(text: string) {
    // Documents for the reference platform escape them as in XML.
    for (const pair of text.replaceAll('&amp;', '&').split('&')) {
      if (pair === '') continue
      const at = pair.indexOf('=')
      const name = decoded(at === -1 ? pair : pair.slice(0, at))
      if (!/^\w[\w.-]{0,63}$/.test(name)) throw new UnfitUrl('must have properties of the form name=value', '')
      if (this.#given.has(name.toLowerCase())) throw new UnfitUrl(`must not name ${name} twice`, 'keep one of them')
      this.#given.set(name.toLowerCase(), { name, value: at === -1 ? '' : decoded(pair.slice(at + 1)) })
    }
  }

  /** '' where it was not given. */
  take(name: string): string {
    const { value = '' } = this.#given.get(name.toLowerCase()) ?? {}
    this.#given.delete(name.toLowerCase())
    return value
  }

  takeNumber(name: string): number {
    const value = this.take(name)
    if (value !== '' && !/^\d{1,7}$/.test(value)) throw new UnfitUrl(`must have a whole number as ${name}`, '')
    return Number(value)
  }

  /** Undefined where it was not given. */
  takeFlag(name: string): boolean | undefined {
    const isGiven = this.#given.has(name.toLowerCase())
    const value = this.take(name).toLowerCase()
    if (!isGiven) return undefined
    if (value !== 'true' && value !== 'false' && value !== '')
      throw new UnfitUrl(`must have true or false as ${name}`, '')
    return value !== 'false'
  }

  /** What is left over. Throws UnfitUrl where it would have asked for security. */
  left(): readonly string[] {
    const names = Array.from(this.#given.values(), ({ name }) => name)
    const secured = names.find(name => /ssl|tls|certificate|keystore|truststore|encmode|channelbinding/i.test(name))
    if (secured !== undefined) {
      throw new UnfitUrl(
        `must not have ${secured}, which is not acted on: the connection could be weaker than it asks for`,
        'certificates are PEM files: sslrootcert, sslcert and sslkey for postgre, serverSslCert for mysql',
      )
    }
    return names
  }
}

const VERIFIED = { isVerified: true, isHostVerified: true }

function postgresqlTls(given: Properties): TlsTerms | null {
  const ssl = given.takeFlag('ssl')
  const mode = given.take('sslmode').toLowerCase()
  const files = {
    authorities: pem(given.take('sslrootcert'), 'sslrootcert'),
    certificate: pem(given.take('sslcert'), 'sslcert'),
    key: pem(given.take('sslkey'), 'sslkey'),
  }
  const chosen = mode === '' && (ssl === true || files.authorities !== '') ? 'verify-full' : mode
  if (chosen === '' || chosen === 'disable') return inTheClear(ssl === true || files.authorities !== '')
  if (chosen === 'require') return { isVerified: files.authorities !== '', isHostVerified: false, ...files }
  if (chosen === 'verify-ca') return { isVerified: true, isHostVerified: false, ...files }
  if (chosen === 'verify-full') return { ...VERIFIED, ...files }
  throw opportunistic('sslmode', 'disable, require, verify-ca or verify-full')
}

/** Names of Connector/J and of the MariaDB connector. */
const MYSQL_MODES: Readonly<Record<string, Pick<TlsTerms, 'isVerified' | 'isHostVerified'>>> = {
  required: { isVerified: false, isHostVerified: false },
  trust: { isVerified: false, isHostVerified: false },
  verify_ca: { isVerified: true, isHostVerified: false },
  verify_identity: VERIFIED,
  verify_full: VERIFIED,
}

function mysqlTls(given: Properties): TlsTerms | null {
  const [useSsl, requireSsl] = [given.takeFlag('useSSL'), given.takeFlag('requireSSL')]
  const verifies = given.takeFlag('verifyServerCertificate')
  const mode = given.take('sslMode').toLowerCase().replace('-', '_')
  const authorities = pem(given.take('serverSslCert'), 'serverSslCert')
  const files = { authorities, certificate: '', key: '' }
  const isAskedFor = requireSsl === true || verifies === true || authorities !== ''
  if (mode === '') {
    if (useSsl === true || (useSsl === undefined && isAskedFor))
      return verifies === false ? { ...MYSQL_MODES.trust!, ...files } : { ...VERIFIED, ...files }
    return inTheClear(isAskedFor)
  }
  if (/^disabled?$/.test(mode)) return inTheClear(isAskedFor || useSsl === true)
  const known = MYSQL_MODES[mode]
  if (known === undefined) throw opportunistic('sslMode', 'DISABLED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY')
  if (useSsl === false || (verifies === true && !known.isVerified)) throw contradictory()
  return { ...known, ...files }
}

function inTheClear(isAskedFor: boolean): null {
  if (isAskedFor) throw contradictory()
  return null
}

function contradictory(): UnfitUrl {
  return new UnfitUrl('must not ask for TLS in one property and refuse it in another', 'decide for one of them')
}

function opportunistic(name: string, modes: string): UnfitUrl {
  return new UnfitUrl(`must not have a mode as ${name} that may end in a connection in the clear`, `use ${modes}`)
}

const PEM_BYTES_MAX = 1024 * 1024

function pem(file: string, name: string): string {
  if (file === '') return ''
  try {
    const text = readFileSync(file, 'utf8')
    if (text.length <= PEM_BYTES_MAX && text.includes('-----BEGIN ')) return text
  } catch {
    // The fault is the same.
  }
  throw new UnfitUrl(`must name a PEM file as ${name}, which can be read`, '')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new UnfitUrl('must not have "%" other than in an escape', 'write %25')
  }
}
