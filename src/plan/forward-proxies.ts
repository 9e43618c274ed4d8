/**
 * Chooses the forward proxy of each route when routes are planned, never per request. Of one transport, the first
 * profile that matches holds: rows, then XML profiles, then profiles for `*`, then `sender.http.proxyHost`.
 */
import { proxyProfile } from '../config/catalogue/proxies.ts'
import type { Configuration } from '../config/catalogue.ts'
import { type Diagnostic, Diagnostics } from '../config/diagnostics.ts'
import { HostPattern } from '../config/host-pattern.ts'
import { ProxyChoice, type ProxyProfile } from '../config/proxy-choice.ts'
import type { ProxyProfiles } from './reactor-plan.ts'
import type { ResolvedKey } from '../config/resolve.ts'
import type { XmlElement } from '../config/xml.ts'
import type { ForwardProxy } from '../proxy/target/route.ts'

type ProfileRow = Configuration['transport.http.proxy_profile'][number]

export interface ForwardProxies {
  /** `host`: of the endpoint, spelled as `URL.hostname`. Null for a direct connection. */
  proxyFor(secured: boolean, host: string): ForwardProxy | null
  /** Profiles that `proxyFor` chooses from, as plain data; left out: none. */
  readonly profiles?: ProxyProfiles
  /** With an error, `proxyFor` must not be used. */
  readonly errors: readonly Diagnostic[]
  readonly warnings: readonly Diagnostic[]
}

type Profile = ProxyProfile<ForwardProxy>

/** The proxy keys of one transport. */
interface ProxySetting {
  /** Section of host, port, nonProxyHosts and profiles. */
  readonly section: string
  readonly host: string
  readonly port: number
  readonly nonProxyHosts: string
  /** XML text. */
  readonly profiles: string
  readonly rowSection: string
  readonly rows: readonly ProfileRow[]
}

/** File and line, and name in diagnostics, of each part of a profile. */
type Positions = Readonly<Record<keyof ProfileRow, readonly [where: string, key: string]>>

const ELEMENTS: Readonly<Record<string, keyof ProfileRow>> = {
  targetHosts: 'target_hosts',
  proxyHost: 'proxy_host',
  proxyPort: 'proxy_port',
  proxyUserName: 'proxy_username',
  proxyPassword: 'proxy_password',
  bypass: 'bypass_hosts',
  bypassHosts: 'bypass_hosts',
}
/** Elements that may enclose the profiles: the key holds the content of a parameter, or the whole parameter. */
const WRAPPERS = ['proxyProfiles', 'profiles', 'parameter']
const XML_DECLARATION = /^\s*<\?xml[^>]*\?>/

// RFC 7617 2: neither user name nor password may hold one.
const CONTROL = /[\u0000-\u001f\u007f]/
/** Their header line goes into the space that is reserved behind every request head. */
const CREDENTIAL_BYTES_MAX = 768

/** `resolved`: file and line of the keys, for diagnostics. */
export async function readForwardProxies(
  configuration: Configuration,
  resolved: readonly Pick<ResolvedKey, 'path' | 'where'>[],
): Promise<ForwardProxies> {
  const findings = new Diagnostics()
  const lines = new Map(resolved.map(({ path, where }) => [path, where]))
  const whereOf = (path: string): string => lines.get(path) ?? ''
  const plain = await profilesOf(plainSetting(configuration), whereOf, findings)
  const secured = await profilesOf(securedSetting(configuration), whereOf, findings)
  const { errors, warnings } = findings
  const choices = { plain: new ProxyChoice(plain), secured: new ProxyChoice(secured) }
  return {
    proxyFor: (isSecured, host) => choices[isSecured ? 'secured' : 'plain'].proxyFor(host),
    profiles: { plain, secured },
    errors,
    warnings,
  }
}

function plainSetting(configuration: Configuration): ProxySetting {
  const http = configuration['transport.passthru_http']
  return {
    section: 'transport.passthru_http',
    host: http['sender.http.proxyHost'],
    port: http['sender.http.proxyPort'],
    nonProxyHosts: http['sender.http.nonProxyHosts'],
    profiles: http['sender.proxyProfiles'],
    rowSection: 'transport.http.proxy_profile',
    rows: configuration['transport.http.proxy_profile'],
  }
}

function securedSetting(configuration: Configuration): ProxySetting {
  const https = configuration['transport.passthru_https']
  return {
    section: 'transport.passthru_https',
    host: https['sender.http.proxyHost'],
    port: https['sender.http.proxyPort'],
    nonProxyHosts: https['sender.http.nonProxyHosts'],
    profiles: https['sender.proxyProfiles'],
    rowSection: 'transport.http.secured_proxy_profile',
    rows: configuration['transport.http.secured_proxy_profile'],
  }
}

async function profilesOf(
  setting: ProxySetting,
  whereOf: (path: string) => string,
  findings: Diagnostics,
): Promise<readonly Profile[]> {
  const { section, host, port, rows, rowSection } = setting
  const owners = new Map<string, string>()
  const profiles = rows.map((profile, at) => {
    const positions = positionsOf(key => [whereOf(`${rowSection}[${at}].${key}`), `${rowSection}[${at}].${key}`])
    return profileOf(profile, positions, owners, findings)
  })
  if (setting.profiles !== '') profiles.push(...(await xmlProfiles(setting, whereOf, owners, findings)))
  if (host === '') return profiles
  const key = `${section}.sender.http.nonProxyHosts`
  const bypass = patternsOf(setting.nonProxyHosts.split(/[|,]/), [whereOf(key), key], findings)
  return [...profiles, { targets: ['*'], bypass, proxy: { host, port, authorization: '' } }]
}

function positionsOf(positionOf: (key: keyof ProfileRow) => readonly [string, string]): Positions {
  const keys = Object.keys(proxyProfile.keys) as (keyof ProfileRow)[]
  return Object.fromEntries(keys.map(key => [key, positionOf(key)])) as unknown as Positions
}

function profileOf(
  profile: ProfileRow,
  positions: Positions,
  owners: Map<string, string>,
  findings: Diagnostics,
): Profile {
  const { target_hosts, bypass_hosts, proxy_host: host, proxy_port: port } = profile
  const targets = patternsOf(target_hosts, positions.target_hosts, findings)
  for (const target of target_hosts) warnOfRepeated(target.toLowerCase(), positions.target_hosts, owners, findings)
  const bypass = patternsOf(bypass_hosts, positions.bypass_hosts, findings)
  return { targets, bypass, proxy: { host, port, authorization: authorizationOf(profile, positions, findings) } }
}

function warnOfRepeated(
  target: string,
  [where, key]: readonly [string, string],
  owners: Map<string, string>,
  findings: Diagnostics,
): void {
  const owner = owners.get(target)
  if (owner === undefined) owners.set(target, key)
  else findings.warn(where, key, `is already in ${owner}, which wins`, 'name it once', target)
}

/** `|` separates patterns too, as in the expressions of the reference platform. */
function patternsOf(
  texts: readonly string[],
  [where, key]: readonly [string, string],
  findings: Diagnostics,
): readonly string[] {
  const words = texts.flatMap(text => text.split('|')).filter(text => text.trim() !== '')
  return words.flatMap(text => {
    if (HostPattern.read(text) !== undefined) return [text]
    const expected = 'expected host names, IP addresses, or patterns whose only special characters are * and \\.'
    findings.error(where, key, expected, 'for example *.example.com', text.trim())
    return []
  })
}

/** Value of Proxy-Authorization, in UTF-8 (RFC 7617); '' without credentials. */
function authorizationOf(profile: ProfileRow, positions: Positions, findings: Diagnostics): string {
  const { proxy_username, proxy_password } = profile
  if (proxy_username === '') return ''
  const error = (key: keyof ProfileRow, expected: string): undefined =>
    findings.error(...positions[key], expected, 'use another one', '(set)')
  if (proxy_username.includes(':')) error('proxy_username', 'must not hold a colon (RFC 7617 2)')
  for (const key of ['proxy_username', 'proxy_password'] as const)
    if (CONTROL.test(profile[key])) error(key, 'must not hold control characters (RFC 7617 2)')
  const credentials = Buffer.from(`${proxy_username}:${proxy_password}`)
  if (credentials.length > CREDENTIAL_BYTES_MAX) {
    error('proxy_password', `must be at most ${CREDENTIAL_BYTES_MAX} bytes with the user name`)
  }
  return `Basic ${credentials.toString('base64')}`
}

// ---- XML profiles ---------------------------------------------------------------------------------------------------

async function xmlProfiles(
  { section, profiles }: ProxySetting,
  whereOf: (path: string) => string,
  owners: Map<string, string>,
  findings: Diagnostics,
): Promise<readonly Profile[]> {
  const path = `${section}.sender.proxyProfiles`
  const { parseXml } = await import('../config/xml.ts')
  // The line breaks of the XML declaration stay, so that lines in diagnostics are right.
  const body = profiles.replace(XML_DECLARATION, declaration => declaration.replaceAll(/[^\n]/g, ''))
  const within = new Diagnostics()
  const root = await parseXml(`<parameter>${body}</parameter>`, path, 'parameter', within)
  const elements = root === undefined ? [] : unwrapped(root)
  const read = elements.flatMap((element, at) => {
    const found = readProfile(element, `profile[${at}]`, within)
    return found === undefined ? [] : [profileOf(found.profile, found.positions, owners, within)]
  })
  const positioned = ({ where, key, ...rest }: Diagnostic): Diagnostic => ({
    ...rest,
    where: whereOf(path),
    key: key === '' ? where : `${where}: ${key}`,
  })
  findings.errors.push(...within.errors.map(positioned))
  findings.warnings.push(...within.warnings.map(positioned))
  if (root !== undefined && elements.length === 0)
    findings.error(whereOf(path), path, 'holds no <profile>', 'add one, or remove the key', '(set)')
  return read
}

function unwrapped(root: XmlElement): readonly XmlElement[] {
  const [only, ...others] = root.children
  return only !== undefined && others.length === 0 && WRAPPERS.includes(only.name) ? unwrapped(only) : root.children
}

/** Undefined with errors. Each element is read like the key of the same meaning. */
function readProfile(
  element: XmlElement,
  name: string,
  findings: Diagnostics,
): { readonly profile: ProfileRow; readonly positions: Positions } | undefined {
  if (element.name !== 'profile') {
    return findings.error(element.where, element.name, 'is not known here', 'expected <profile>')
  }
  const before = findings.errors.length
  const given = partsOf(element, name, findings)
  const positions = positionsOf(key => {
    const part = given.get(key)
    const known = Object.entries(ELEMENTS).find(([, meant]) => meant === key)![0]
    return [(part ?? element).where, `${name}/${part?.name ?? known}`]
  })
  const values = Object.entries(proxyProfile.keys).map(([key, { read, required, defaultValue, expects }]) => {
    const place = positions[key as keyof ProfileRow]
    const part = given.get(key as keyof ProfileRow)
    if (part === undefined && required) findings.error(...place, 'is missing', 'every profile must have it')
    const value = part === undefined ? defaultValue : read(part.text)
    if (value === undefined) findings.error(...place, `expected ${expects}`, '', '(set)')
    return [key, value]
  })
  if (findings.errors.length > before) return undefined
  const profile = Object.fromEntries(values) as ProfileRow
  for (const { keys, must, severity, holds } of proxyProfile.rules) {
    if (holds(profile)) continue
    if (severity === 'warning') findings.warn(...positions[keys[0]!], must, '')
    else findings.error(...positions[keys[0]!], must, '')
  }
  return { profile, positions }
}

/** Elements by the key of the same meaning. */
function partsOf(element: XmlElement, name: string, findings: Diagnostics): ReadonlyMap<keyof ProfileRow, XmlElement> {
  const parts = new Map<keyof ProfileRow, XmlElement>()
  for (const part of element.children) {
    const key = ELEMENTS[part.name]
    const place = [part.where, `${name}/${part.name}`] as const
    if (key === undefined) findings.error(...place, 'is not known', `known are ${Object.keys(ELEMENTS).join(', ')}`)
    else if (parts.has(key)) findings.error(...place, 'is repeated', 'write it once, with commas between hosts')
    else parts.set(key, part)
  }
  return parts
}
