/** Plans the TLS connections to backends from the keys of the sender and its profiles. */
import type { Diagnostics } from '../config/diagnostics.ts'
import type { XmlElement } from '../config/xml.ts'
import type { TlsClientPlan } from '../socket/tls.ts'
import type { StoreSettings } from './key-store.ts'
import { readProfiles, readStoreElement, wordsOf } from './profile-file.ts'
import { DEFAULT_PROTOCOL_SETTINGS } from './protocol-settings.ts'
import type { TlsPlanContext } from './tls-plan-context.ts'

export interface ClientSettings {
  /** Null: no client certificate. */
  readonly keyStore: StoreSettings | null
  /** Null: the root certificates of Node. */
  readonly trustStore: StoreSettings | null
  readonly hostnameVerifier: string
  /** '': no profiles. */
  readonly profilePath: string
  /** Paths of the keys, and where they are set, for diagnostics. */
  readonly names: Readonly<Record<'where' | 'hostnameVerifier' | 'profilePath', string>>
}

/** The plan for one backend, or for all other backends. */
export interface BackendTlsPlan {
  /** `host:port` in lower case, IPv6 in brackets; `default` for all other backends. */
  readonly match: string
  readonly plan: TlsClientPlan
}

const PROFILE_ELEMENTS = ['servers', 'KeyStore', 'TrustStore']
const ANY_SERVER = '*'
const SERVER = /^(\[[0-9a-f:.]+\]|[0-9a-z_.-]+):(\d{1,5})$/
const PORT_MAX = 65_535

/** The documented verifiers. `DefaultAndLocalhost` does not exempt localhost: its certificate must name it. */
const VERIFIERS: Readonly<Record<string, TlsClientPlan['hostname']>> = {
  '': 'strict',
  strict: 'strict',
  default: 'strict',
  defaultandlocalhost: 'strict',
  allowall: 'none',
}

/** Plans of the profiles in order, then the default plan. With errors in the diagnostics they must not be used. */
export async function planClients(
  settings: ClientSettings,
  context: TlsPlanContext,
): Promise<readonly BackendTlsPlan[]> {
  const hostname = readVerifier(settings, context.diagnostics)
  const plan = await planClient(settings.keyStore, settings.trustStore, hostname, context)
  const profiles = await planProfiles(settings, hostname, context)
  return profiles.some(({ match }) => match === 'default') ? profiles : [...profiles, { match: 'default', plan }]
}

function readVerifier(
  { hostnameVerifier, names }: ClientSettings,
  diagnostics: Diagnostics,
): TlsClientPlan['hostname'] {
  const hostname = VERIFIERS[hostnameVerifier.toLowerCase()]
  if (hostname === undefined) {
    const expected = 'expected one of Strict, Default, DefaultAndLocalhost, AllowAll'
    diagnostics.error(names.where, names.hostnameVerifier, expected, 'leave it out for Strict', hostnameVerifier)
  }
  if (hostname === 'none') {
    const expected = 'backends are accepted with a certificate for any name'
    diagnostics.warn(names.where, names.hostnameVerifier, expected, 'set Strict', hostnameVerifier)
  }
  return hostname ?? 'strict'
}

export async function planClient(
  keyStore: StoreSettings | null,
  trustStore: StoreSettings | null,
  hostname: TlsClientPlan['hostname'],
  context: TlsPlanContext,
): Promise<TlsClientPlan> {
  const identity = keyStore === null ? null : ((await context.identity(keyStore)) ?? null)
  const ca = trustStore === null ? null : ((await context.trusted(trustStore)) ?? [])
  return { ...DEFAULT_PROTOCOL_SETTINGS, identity, ca, hostname }
}

async function planProfiles(
  settings: ClientSettings,
  hostname: TlsClientPlan['hostname'],
  context: TlsPlanContext,
): Promise<readonly BackendTlsPlan[]> {
  const { profilePath, names } = settings
  if (profilePath === '') return []
  const { diagnostics } = context
  const file = { filePath: profilePath, name: names.profilePath, root: 'customSSLProfiles', elements: PROFILE_ELEMENTS }
  const plans = new Map<string, TlsClientPlan>()
  for (const profile of await readProfiles(file, context)) {
    // A profile inherits the stores that it leaves out.
    const keyStore = readStoreElement(profile, 'KeyStore', diagnostics) ?? settings.keyStore
    const trustStore = readStoreElement(profile, 'TrustStore', diagnostics) ?? settings.trustStore
    const plan = await planClient(keyStore, trustStore, hostname, context)
    for (const server of readServers(profile, diagnostics)) {
      if (plans.has(server)) diagnostics.warn(profile.where, 'servers', 'has a profile already', 'name it once', server)
      else plans.set(server, plan)
    }
  }
  const matches = [...plans].map(([match, plan]) => ({ match, plan }))
  return [...matches.filter(({ match }) => match !== 'default'), ...matches.filter(({ match }) => match === 'default')]
}

function readServers(profile: XmlElement, diagnostics: Diagnostics): readonly string[] {
  const servers = wordsOf(profile, 'servers')
  if (servers.length === 0) diagnostics.error(profile.where, 'servers', 'is missing', 'add host:port, or *')
  return servers.flatMap(server => {
    if (server === ANY_SERVER) return ['default']
    const port = Number(SERVER.exec(server)?.[2] ?? 0)
    if (port > 0 && port <= PORT_MAX) return [server]
    diagnostics.error(profile.child('servers')!.where, 'servers', 'expected host:port, or *', '', server)
    return []
  })
}
