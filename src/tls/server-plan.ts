/** Plans the TLS of the listener, with its virtual hosts, from the keys of the listener and its profiles. */
import { X509Certificate } from 'node:crypto'
import type { Diagnostics } from '../config/diagnostics.ts'
import type { XmlElement } from '../config/xml.ts'
import type { TlsHost, TlsIdentity, TlsServerPlan } from '../socket/tls.ts'
import type { StoreSettings } from './key-store.ts'
import { readProfiles, readStoreElement, wordsOf } from './profile-file.ts'
import { type ConfiguredProtocols, protocolSettings } from './protocol-settings.ts'
import { dnsNamesOf } from './store-entries.ts'
import type { TlsPlanContext } from './tls-plan-context.ts'

export interface ServerSettings {
  /** Null: a self-signed certificate. */
  readonly keyStore: StoreSettings | null
  /** Null: no client certificate is trusted. */
  readonly trustStore: StoreSettings | null
  readonly verifyClient: string
  readonly protocols: ConfiguredProtocols
  /** '': no profiles. */
  readonly profilePath: string
  /** '': all addresses. */
  readonly bindAddress: string
  /** Paths of the keys, and where they are set, for diagnostics. */
  readonly names: Readonly<Record<'where' | 'verifyClient' | 'trustStore' | 'profilePath', string>>
}

/** The plan without its ticket keys, which are renewed independently. */
export type ServerMaterial = Omit<TlsServerPlan, 'ticketKeys'>

const VERIFY_MODES = ['none', 'optional', 'require'] as const
const PROFILE_ELEMENTS = ['bindAddress', 'serverName', 'KeyStore', 'TrustStore', 'SSLVerifyClient']
const ALL_ADDRESSES = ['', '0.0.0.0', '::', '*']
/** A host name as in SNI (RFC 6066 3), or `*.` and a domain, where `*` stands for one label. */
const SERVER_NAME = /^(\*\.)?([0-9a-z_]([0-9a-z_-]{0,61}[0-9a-z_])?\.)*[0-9a-z_]([0-9a-z_-]{0,61}[0-9a-z_])?$/

/** `fallback`: the identity without a key store. Returns undefined with errors in the diagnostics. */
export async function planServer(
  settings: ServerSettings,
  fallback: TlsIdentity,
  context: TlsPlanContext,
): Promise<ServerMaterial | undefined> {
  const { keyStore, trustStore, names } = settings
  const protocols = protocolSettings(settings.protocols, context.diagnostics)
  const identity = keyStore === null ? fallback : await context.identity(keyStore)
  const host = await planHost(identity, trustStore, settings.verifyClient, names, context)
  const hosts = await planVirtualHosts(settings, context)
  return host === undefined ? undefined : { ...protocols, ...host, hosts }
}

async function planHost(
  identity: TlsIdentity | undefined,
  trustStore: StoreSettings | null,
  mode: string,
  names: Readonly<Record<'where' | 'verifyClient' | 'trustStore', string>>,
  context: TlsPlanContext,
): Promise<TlsHost | undefined> {
  const verifyClient = readVerifyMode(mode, names.where, names.verifyClient, context.diagnostics)
  if (verifyClient !== 'none' && trustStore === null) {
    const expected = 'clients are asked for certificates, and no trust store is set'
    context.diagnostics.error(names.where, names.trustStore, expected, `set ${names.trustStore}`)
  }
  const ca = trustStore === null ? [] : ((await context.trusted(trustStore)) ?? [])
  return identity === undefined ? undefined : { identity, verifyClient, ca: verifyClient === 'none' ? [] : ca }
}

function readVerifyMode(given: string, where: string, key: string, diagnostics: Diagnostics): TlsHost['verifyClient'] {
  const mode = given === '' ? 'none' : VERIFY_MODES.find(known => known === given.toLowerCase())
  if (mode === undefined)
    diagnostics.error(where, key, `expected one of ${VERIFY_MODES.join(', ')}`, 'leave it out for none', given)
  // With an error the plan is not used; the strictest mode is the safe value.
  return mode ?? 'require'
}

async function planVirtualHosts(settings: ServerSettings, context: TlsPlanContext): Promise<TlsServerPlan['hosts']> {
  const { profilePath, names, bindAddress } = settings
  if (profilePath === '') return []
  const file = { filePath: profilePath, name: names.profilePath, root: 'SSLProfiles', elements: PROFILE_ELEMENTS }
  const hosts: TlsServerPlan['hosts'][number][] = []
  const profileOf = new Map<string, string>()
  for (const profile of await readProfiles(file, context)) {
    warnOfAddress(profile, bindAddress, context.diagnostics)
    const host = await planVirtualHost(profile, settings, context)
    if (host === undefined) continue
    hosts.push(host)
    for (const name of host.names) {
      const earlier = profileOf.get(name)
      if (earlier === undefined) profileOf.set(name, profile.where)
      else warnOfDuplicate(name, profile.where, earlier, context.diagnostics)
    }
  }
  return hosts
}

/** A profile inherits the verification of clients that it leaves out (D48): SNI must not bypass `SSLVerifyClient`. */
async function planVirtualHost(
  profile: XmlElement,
  settings: ServerSettings,
  context: TlsPlanContext,
): Promise<TlsServerPlan['hosts'][number] | undefined> {
  const { diagnostics } = context
  const keyStore = readStoreElement(profile, 'KeyStore', diagnostics)
  const trustStore =
    profile.child('TrustStore') === undefined
      ? settings.trustStore
      : readStoreElement(profile, 'TrustStore', diagnostics)
  if (keyStore === undefined) {
    if (profile.child('KeyStore') === undefined) diagnostics.error(profile.where, 'KeyStore', 'is missing', 'add it')
    return undefined
  }
  const mode = profile.child('SSLVerifyClient')?.text || settings.verifyClient
  const names = { where: profile.where, verifyClient: 'SSLVerifyClient', trustStore: 'TrustStore' }
  const identity = await context.identity(keyStore)
  const host = await planHost(identity, trustStore ?? null, mode, names, context)
  if (host === undefined) return undefined
  const given = wordsOf(profile, 'serverName')
  for (const name of given.filter(word => !SERVER_NAME.test(word))) {
    diagnostics.error(profile.child('serverName')!.where, 'serverName', 'expected host names or *.domain', '', name)
  }
  const serverNames = given.length > 0 ? given : dnsNamesOf(new X509Certificate(host.identity.cert))
  if (serverNames.length === 0) {
    const hint = 'add <serverName>, or use a certificate with DNS names'
    diagnostics.error(profile.where, 'serverName', 'neither the profile nor its certificate names a host', hint)
  }
  return { ...host, names: serverNames }
}

/** All profiles share one listener; the server name selects the profile, not the address. */
function warnOfAddress(profile: XmlElement, bound: string, diagnostics: Diagnostics): void {
  const element = profile.child('bindAddress')
  if (element === undefined || element.text === bound) return
  if (ALL_ADDRESSES.includes(element.text) && ALL_ADDRESSES.includes(bound)) return
  const expected = 'is not the address of the listener and is ignored: the server name selects the profile'
  diagnostics.warn(element.where, 'bindAddress', expected, 'add <serverName>', element.text)
}

function warnOfDuplicate(name: string, where: string, earlier: string, diagnostics: Diagnostics): void {
  diagnostics.warn(where, 'serverName', `is served by the profile at ${earlier} already`, 'name it once', name)
}
