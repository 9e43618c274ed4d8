/** The listener's side: from the keys of its section, and its profiles, to the plan that reactors serve. */
import { X509Certificate } from 'node:crypto'
import type { Findings } from '../config/findings.ts'
import type { XmlElement } from '../config/xml.ts'
import type { TlsHost, TlsIdentity, TlsServerPlan } from '../socket/tls.ts'
import { dnsNamesOf } from './identity.ts'
import { readProfiles, storeOf, wordsOf } from './profile-file.ts'
import type { StoreSetting } from './store-file.ts'
import type { Surroundings } from './surroundings.ts'
import { type TermsSetting, termsOf } from './terms.ts'

export interface ServerSetting {
  /** Null for the self-signed one. */
  readonly keyStore: StoreSetting | null
  /** Null for none. */
  readonly trustStore: StoreSetting | null
  readonly verifyClient: string
  readonly terms: TermsSetting
  /** '' for none. */
  readonly profilePath: string
  /** Where the listener is bound; '' for every address. */
  readonly bindAddress: string
  /** How keys are called, for faults. */
  readonly names: Readonly<Record<'where' | 'verifyClient' | 'trustStore' | 'profilePath', string>>
}

/** A plan but for its ticket keys, which change by themselves. */
export type ServerMaterial = Omit<TlsServerPlan, 'ticketKeys'>

const MODES = ['none', 'optional', 'require'] as const
const PROFILE_ELEMENTS = ['bindAddress', 'serverName', 'KeyStore', 'TrustStore', 'SSLVerifyClient']
const EVERY_ADDRESS = ['', '0.0.0.0', '::', '*']
/** RFC 6066 3: names in SNI are host names; `*.` stands for one label. */
const SERVER_NAME = /^(\*\.)?([0-9a-z_]([0-9a-z_-]{0,61}[0-9a-z_])?\.)*[0-9a-z_]([0-9a-z_-]{0,61}[0-9a-z_])?$/

/** `fallback`: the identity where no key store is set. Undefined with faults in the findings. */
export async function serverPlan(
  setting: ServerSetting,
  fallback: () => Promise<TlsIdentity | undefined>,
  surroundings: Surroundings,
): Promise<ServerMaterial | undefined> {
  const { findings } = surroundings
  const { keyStore, trustStore, names } = setting
  const terms = termsOf(setting.terms, findings)
  const identity = keyStore === null ? await fallback() : await surroundings.identity(keyStore)
  const host = await hostOf(identity, trustStore, setting.verifyClient, names, surroundings)
  const hosts = await virtualHosts(setting, surroundings)
  return host === undefined ? undefined : { ...terms, ...host, hosts }
}

async function hostOf(
  identity: TlsIdentity | undefined,
  trustStore: StoreSetting | null,
  mode: string,
  names: Readonly<Record<'where' | 'verifyClient' | 'trustStore', string>>,
  surroundings: Surroundings,
): Promise<TlsHost | undefined> {
  const verifyClient = verifyClientOf(mode, names.where, names.verifyClient, surroundings.findings)
  if (verifyClient !== 'none' && trustStore === null) {
    const expected = 'clients are asked for certificates, and none are trusted'
    surroundings.findings.fault(names.where, names.trustStore, expected, `set ${names.trustStore}`)
  }
  const ca = trustStore === null ? [] : ((await surroundings.trusted(trustStore)) ?? [])
  return identity === undefined ? undefined : { identity, verifyClient, ca: verifyClient === 'none' ? [] : ca }
}

function verifyClientOf(given: string, where: string, key: string, findings: Findings): TlsHost['verifyClient'] {
  const mode = given === '' ? 'none' : MODES.find(known => known === given.toLowerCase())
  if (mode === undefined)
    findings.fault(where, key, `expected one of ${MODES.join(', ')}`, 'leave it out for none', given)
  // A fault keeps the plan from being used; until then the strictest holds.
  return mode ?? 'require'
}

async function virtualHosts(setting: ServerSetting, surroundings: Surroundings): Promise<TlsServerPlan['hosts']> {
  const { profilePath, names, bindAddress } = setting
  if (profilePath === '') return []
  const file = { filePath: profilePath, name: names.profilePath, root: 'SSLProfiles', elements: PROFILE_ELEMENTS }
  const hosts: TlsServerPlan['hosts'][number][] = []
  const owners = new Map<string, string>()
  for (const profile of await readProfiles(file, surroundings.home, surroundings.files, surroundings.findings)) {
    warnOfAddress(profile, bindAddress, surroundings.findings)
    const host = await virtualHost(profile, setting, surroundings)
    if (host === undefined) continue
    hosts.push(host)
    for (const name of host.names) noteOwner(name, profile.where, owners, surroundings.findings)
  }
  return hosts
}

/** What a profile leaves out about client certificates is as for the listener: a name must not be a way around. */
async function virtualHost(
  profile: XmlElement,
  setting: ServerSetting,
  surroundings: Surroundings,
): Promise<TlsServerPlan['hosts'][number] | undefined> {
  const { findings } = surroundings
  const keyStore = storeOf(profile, 'KeyStore', findings)
  const trustStore =
    profile.child('TrustStore') === undefined ? setting.trustStore : storeOf(profile, 'TrustStore', findings)
  if (keyStore === undefined) {
    if (profile.child('KeyStore') === undefined) findings.fault(profile.where, 'KeyStore', 'is missing', 'add it')
    return undefined
  }
  const mode = profile.child('SSLVerifyClient')?.text || setting.verifyClient
  const names = { where: profile.where, verifyClient: 'SSLVerifyClient', trustStore: 'TrustStore' }
  const identity = await surroundings.identity(keyStore)
  const host = await hostOf(identity, trustStore ?? null, mode, names, surroundings)
  if (host === undefined) return undefined
  const given = wordsOf(profile, 'serverName')
  for (const name of given.filter(word => !SERVER_NAME.test(word))) {
    findings.fault(profile.child('serverName')!.where, 'serverName', 'expected host names or *.domain', '', name)
  }
  const served = given.length > 0 ? given : dnsNamesOf(new X509Certificate(host.identity.cert))
  if (served.length === 0) {
    const remedy = 'add <serverName>, or take a certificate with a subject alternative name'
    findings.fault(profile.where, 'serverName', 'nothing says for which names the profile is', remedy)
  }
  return { ...host, names: served }
}

/** There is one listener, whose profiles are told apart by name. */
function warnOfAddress(profile: XmlElement, bound: string, findings: Findings): void {
  const element = profile.child('bindAddress')
  if (element === undefined || element.text === bound) return
  if (EVERY_ADDRESS.includes(element.text) && EVERY_ADDRESS.includes(bound)) return
  const expected = 'is not the address of the listener and is ignored: the profile is chosen by name'
  findings.warn(element.where, 'bindAddress', expected, 'add <serverName>', element.text)
}

function noteOwner(name: string, where: string, owners: Map<string, string>, findings: Findings): void {
  const owner = owners.get(name)
  if (owner === undefined) owners.set(name, where)
  else findings.warn(where, 'serverName', `is served by the profile at ${owner} already`, 'name it once', name)
}
