/**
 * Which backend is reached through which forward proxy, out of the keys of both transports. Asked when routes are
 * planned, never per request. Profiles come first, in their order: rows, then those written as XML; then the proxy that
 * is for every backend. A profile for `*` is for those that no other one names.
 */
import { proxyProfile } from '../config/catalogue/proxies.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { Fault } from '../config/fault.ts'
import { Findings } from '../config/findings.ts'
import { HostPattern } from '../config/host-pattern.ts'
import type { ResolvedKey } from '../config/resolve.ts'
import type { XmlElement } from '../config/xml.ts'
import type { ForwardProxy } from '../target/route.ts'

type ProfileRow = Configuration['transport.http.proxy_profile'][number]

export interface ForwardProxies {
  /** `host`: that of the endpoint, in the spelling of `URL.hostname`. Null: directly. */
  proxyFor(secured: boolean, host: string): ForwardProxy | null
  /** With any of these the proxies are of no use. */
  readonly faults: readonly Fault[]
  readonly warnings: readonly Fault[]
}

/** One proxy and whom it is for. */
interface Profile {
  readonly targets: readonly HostPattern[]
  readonly bypass: readonly HostPattern[]
  readonly proxy: ForwardProxy
}

/** What the keys of one transport say. */
interface ProxySetting {
  /** Section of the keys that follow. */
  readonly section: string
  readonly host: string
  readonly port: number
  readonly nonProxyHosts: string
  /** XML. */
  readonly profiles: string
  readonly rowSection: string
  readonly rows: readonly ProfileRow[]
}

/** How the parts of a profile are called in faults, and where they stand. */
type Places = Readonly<Record<keyof ProfileRow, readonly [where: string, key: string]>>

const ELEMENTS: Readonly<Record<string, keyof ProfileRow>> = {
  targetHosts: 'target_hosts',
  proxyHost: 'proxy_host',
  proxyPort: 'proxy_port',
  proxyUserName: 'proxy_username',
  proxyPassword: 'proxy_password',
  bypass: 'bypass_hosts',
  bypassHosts: 'bypass_hosts',
}
/** What profiles may stand in: the text of the key is taken as the inside of a parameter, or as the whole of it. */
const FRAMES = ['proxyProfiles', 'profiles', 'parameter']
const XML_DECLARATION = /^\s*<\?xml[^>]*\?>/

// RFC 7617 2: neither part may hold one.
const CONTROL = /[\u0000-\u001f\u007f]/
/** Their line has a place in the room behind every head. */
const CREDENTIAL_BYTES_MAX = 768

/** `resolved`: where keys were set, for faults. */
export async function forwardProxies(
  configuration: Configuration,
  resolved: readonly Pick<ResolvedKey, 'path' | 'where'>[],
): Promise<ForwardProxies> {
  const findings = new Findings()
  const places = new Map(resolved.map(({ path, where }) => [path, where]))
  const whereOf = (path: string): string => places.get(path) ?? ''
  const plain = await profilesOf(plainSetting(configuration), whereOf, findings)
  const secured = await profilesOf(securedSetting(configuration), whereOf, findings)
  const { faults, warnings } = findings
  return { proxyFor: (isSecured, host) => proxyIn(isSecured ? secured : plain, host), faults, warnings }
}

function proxyIn(profiles: readonly Profile[], host: string): ForwardProxy | null {
  const profile =
    profiles.find(({ targets }) => targets.some(target => !target.isAny && target.matches(host))) ??
    profiles.find(({ targets }) => targets.some(target => target.isAny))
  if (profile === undefined || profile.bypass.some(bypass => bypass.matches(host))) return null
  return profile.proxy
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
  findings: Findings,
): Promise<readonly Profile[]> {
  const { section, host, port, rows, rowSection } = setting
  const owners = new Map<string, string>()
  const profiles = rows.map((profile, at) => {
    const places = placesOf(key => [whereOf(`${rowSection}[${at}].${key}`), `${rowSection}[${at}].${key}`])
    return profileOf(profile, places, owners, findings)
  })
  if (setting.profiles !== '') profiles.push(...(await writtenProfiles(setting, whereOf, owners, findings)))
  if (host === '') return profiles
  const key = `${section}.sender.http.nonProxyHosts`
  const bypass = patternsOf(setting.nonProxyHosts.split(/[|,]/), [whereOf(key), key], findings)
  return [...profiles, { targets: [HostPattern.read('*')!], bypass, proxy: { host, port, authorization: '' } }]
}

function placesOf(placeOf: (key: keyof ProfileRow) => readonly [string, string]): Places {
  const keys = Object.keys(proxyProfile.keys) as (keyof ProfileRow)[]
  return Object.fromEntries(keys.map(key => [key, placeOf(key)])) as unknown as Places
}

function profileOf(profile: ProfileRow, places: Places, owners: Map<string, string>, findings: Findings): Profile {
  const { target_hosts, bypass_hosts, proxy_host: host, proxy_port: port } = profile
  const targets = patternsOf(target_hosts, places.target_hosts, findings)
  for (const target of target_hosts) noteOwner(target.toLowerCase(), places.target_hosts, owners, findings)
  const bypass = patternsOf(bypass_hosts, places.bypass_hosts, findings)
  return { targets, bypass, proxy: { host, port, authorization: authorizationOf(profile, places, findings) } }
}

function noteOwner(
  target: string,
  [where, key]: readonly [string, string],
  owners: Map<string, string>,
  findings: Findings,
): void {
  const owner = owners.get(target)
  if (owner === undefined) owners.set(target, key)
  else findings.warn(where, key, `is in ${owner} already, which holds`, 'name it once', target)
}

/** In the reference platform's expressions `|` separates as well. */
function patternsOf(
  texts: readonly string[],
  [where, key]: readonly [string, string],
  findings: Findings,
): readonly HostPattern[] {
  const words = texts.flatMap(text => text.split('|')).filter(text => text.trim() !== '')
  return words.flatMap(text => {
    const pattern = HostPattern.read(text)
    if (pattern !== undefined) return [pattern]
    const expected = 'expected host names, IP addresses, or patterns of which only * and \\. have a meaning'
    findings.fault(where, key, expected, 'for example *.example.com', text.trim())
    return []
  })
}

/** RFC 7617, in UTF-8. '' without credentials. */
function authorizationOf(profile: ProfileRow, places: Places, findings: Findings): string {
  const { proxy_username, proxy_password } = profile
  if (proxy_username === '') return ''
  const fault = (key: keyof ProfileRow, expected: string): undefined =>
    findings.fault(...places[key], expected, 'choose another', '(set)')
  if (proxy_username.includes(':')) fault('proxy_username', 'must not hold a colon (RFC 7617 2)')
  for (const key of ['proxy_username', 'proxy_password'] as const)
    if (CONTROL.test(profile[key])) fault(key, 'must not hold control characters (RFC 7617 2)')
  const credentials = Buffer.from(`${proxy_username}:${proxy_password}`)
  if (credentials.length > CREDENTIAL_BYTES_MAX) {
    fault('proxy_password', `must be at most ${CREDENTIAL_BYTES_MAX} bytes long, together with the name`)
  }
  return `Basic ${credentials.toString('base64')}`
}

// ---- profiles as XML ------------------------------------------------------------------------------------------------

async function writtenProfiles(
  { section, profiles }: ProxySetting,
  whereOf: (path: string) => string,
  owners: Map<string, string>,
  findings: Findings,
): Promise<readonly Profile[]> {
  const path = `${section}.sender.proxyProfiles`
  const { parseXml } = await import('../config/xml.ts')
  // Without its lines those of the profiles would be others.
  const body = profiles.replace(XML_DECLARATION, declaration => declaration.replaceAll(/[^\n]/g, ''))
  const within = new Findings()
  const root = await parseXml(`<parameter>${body}</parameter>`, path, 'parameter', within)
  const elements = root === undefined ? [] : unframed(root)
  const read = elements.flatMap((element, at) => {
    const found = readProfile(element, `profile[${at}]`, within)
    return found === undefined ? [] : [profileOf(found.profile, found.places, owners, within)]
  })
  const placed = ({ where, key, ...said }: Fault): Fault => ({
    ...said,
    where: whereOf(path),
    key: key === '' ? where : `${where}: ${key}`,
  })
  findings.faults.push(...within.faults.map(placed))
  findings.warnings.push(...within.warnings.map(placed))
  if (root !== undefined && elements.length === 0)
    findings.fault(whereOf(path), path, 'holds no <profile>', 'add one, or leave it out', '(set)')
  return read
}

function unframed(root: XmlElement): readonly XmlElement[] {
  const [only, ...others] = root.children
  return only !== undefined && others.length === 0 && FRAMES.includes(only.name) ? unframed(only) : root.children
}

/** Undefined with faults. Each part is read as the key of the same meaning is. */
function readProfile(
  element: XmlElement,
  name: string,
  findings: Findings,
): { readonly profile: ProfileRow; readonly places: Places } | undefined {
  if (element.name !== 'profile') {
    return findings.fault(element.where, element.name, 'is not known here', 'expected <profile>')
  }
  const before = findings.faults.length
  const given = partsOf(element, name, findings)
  const places = placesOf(key => {
    const part = given.get(key)
    const known = Object.entries(ELEMENTS).find(([, meant]) => meant === key)![0]
    return [(part ?? element).where, `${name}/${part?.name ?? known}`]
  })
  const values = Object.entries(proxyProfile.keys).map(([key, { read, required, fallback, expects }]) => {
    const place = places[key as keyof ProfileRow]
    const part = given.get(key as keyof ProfileRow)
    if (part === undefined && required) findings.fault(...place, 'is missing', 'every profile must have it')
    const value = part === undefined ? fallback : read(part.text)
    if (value === undefined) findings.fault(...place, `expected ${expects}`, '', '(set)')
    return [key, value]
  })
  if (findings.faults.length > before) return undefined
  const profile = Object.fromEntries(values) as ProfileRow
  for (const { keys, must, severity, holds } of proxyProfile.rules) {
    if (holds(profile)) continue
    if (severity === 'warning') findings.warn(...places[keys[0]!], must, '')
    else findings.fault(...places[keys[0]!], must, '')
  }
  return { profile, places }
}

/** Elements by what they mean. */
function partsOf(element: XmlElement, name: string, findings: Findings): ReadonlyMap<keyof ProfileRow, XmlElement> {
  const parts = new Map<keyof ProfileRow, XmlElement>()
  for (const part of element.children) {
    const key = ELEMENTS[part.name]
    const place = [part.where, `${name}/${part.name}`] as const
    if (key === undefined) findings.fault(...place, 'is not known', `known are ${Object.keys(ELEMENTS).join(', ')}`)
    else if (parts.has(key)) findings.fault(...place, 'is there twice', 'separate hosts by commas')
    else parts.set(key, part)
  }
  return parts
}
