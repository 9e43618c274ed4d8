/** The sender's side: from the keys of its section, and its profiles, to a plan per backend. */
import type { Findings } from '../config/findings.ts'
import type { XmlElement } from '../config/xml.ts'
import type { TlsClientPlan, TlsTerms } from '../socket/tls.ts'
import { readProfiles, storeOf, wordsOf } from './profile-file.ts'
import type { StoreSetting } from './store-file.ts'
import type { Surroundings } from './surroundings.ts'
import { DEFAULT_TERMS } from './terms.ts'

export interface ClientSetting {
  /** Null for none. */
  readonly keyStore: StoreSetting | null
  /** Null for the roots that Node carries. */
  readonly trustStore: StoreSetting | null
  readonly hostnameVerifier: string
  /** '' for none. */
  readonly profilePath: string
  /** How keys are called, for faults. */
  readonly names: Readonly<Record<'where' | 'hostnameVerifier' | 'profilePath', string>>
}

/** One plan and whom it is for. */
export interface ClientMatch {
  /** `host:port` in lower case, IPv6 in brackets; `default` for every other backend. */
  readonly match: string
  readonly plan: TlsClientPlan
}

const PROFILE_ELEMENTS = ['servers', 'KeyStore', 'TrustStore']
const ANY_SERVER = '*'
const SERVER = /^(\[[0-9a-f:.]+\]|[0-9a-z_.-]+):(\d{1,5})$/
const PORT_MAX = 65_535

/** Documented verifiers. `localhost` is not excepted from anything: its name must be in the certificate. */
const VERIFIERS: Readonly<Record<string, TlsClientPlan['hostname']>> = {
  '': 'strict',
  strict: 'strict',
  default: 'strict',
  defaultandlocalhost: 'strict',
  allowall: 'none',
}

/** Profiles in order, then the default, which is always there. With faults in the findings it is of no use. */
export async function clientPlans(setting: ClientSetting, surroundings: Surroundings): Promise<readonly ClientMatch[]> {
  const hostname = hostnameOf(setting, surroundings.findings)
  const plan = await planOf(setting.keyStore, setting.trustStore, hostname, DEFAULT_TERMS, surroundings)
  const profiles = await profilesOf(setting, hostname, surroundings)
  return profiles.some(({ match }) => match === 'default') ? profiles : [...profiles, { match: 'default', plan }]
}

function hostnameOf({ hostnameVerifier, names }: ClientSetting, findings: Findings): TlsClientPlan['hostname'] {
  const hostname = VERIFIERS[hostnameVerifier.toLowerCase()]
  if (hostname === undefined) {
    const expected = 'expected one of Strict, Default, DefaultAndLocalhost, AllowAll'
    findings.fault(names.where, names.hostnameVerifier, expected, 'leave it out for Strict', hostnameVerifier)
  }
  if (hostname === 'none') {
    const expected = 'a backend is believed with the certificate of any other'
    findings.warn(names.where, names.hostnameVerifier, expected, 'set Strict', hostnameVerifier)
  }
  return hostname ?? 'strict'
}

/** A plan of stores that may each be missing. */
export async function planOf(
  keyStore: StoreSetting | null,
  trustStore: StoreSetting | null,
  hostname: TlsClientPlan['hostname'],
  terms: TlsTerms,
  surroundings: Surroundings,
): Promise<TlsClientPlan> {
  const identity = keyStore === null ? null : ((await surroundings.identity(keyStore)) ?? null)
  const ca = trustStore === null ? null : ((await surroundings.trusted(trustStore)) ?? [])
  return { ...terms, identity, ca, hostname }
}

async function profilesOf(
  setting: ClientSetting,
  hostname: TlsClientPlan['hostname'],
  surroundings: Surroundings,
): Promise<readonly ClientMatch[]> {
  const { profilePath, names } = setting
  if (profilePath === '') return []
  const { findings } = surroundings
  const file = { filePath: profilePath, name: names.profilePath, root: 'customSSLProfiles', elements: PROFILE_ELEMENTS }
  const plans = new Map<string, TlsClientPlan>()
  for (const profile of await readProfiles(file, surroundings.home, surroundings.files, findings)) {
    const keyStore = storeOf(profile, 'KeyStore', findings) ?? null
    const trustStore = storeOf(profile, 'TrustStore', findings) ?? null
    // What a profile leaves out is as it is for every backend.
    const plan = await planOf(
      keyStore ?? setting.keyStore,
      trustStore ?? setting.trustStore,
      hostname,
      DEFAULT_TERMS,
      surroundings,
    )
    for (const server of serversOf(profile, findings)) {
      if (plans.has(server)) findings.warn(profile.where, 'servers', 'has a profile already', 'name it once', server)
      else plans.set(server, plan)
    }
  }
  const matches = [...plans].map(([match, plan]) => ({ match, plan }))
  return [...matches.filter(({ match }) => match !== 'default'), ...matches.filter(({ match }) => match === 'default')]
}

function serversOf(profile: XmlElement, findings: Findings): readonly string[] {
  const servers = wordsOf(profile, 'servers')
  if (servers.length === 0) findings.fault(profile.where, 'servers', 'is missing', 'add host:port, or *')
  return servers.flatMap(server => {
    if (server === ANY_SERVER) return ['default']
    const port = Number(SERVER.exec(server)?.[2] ?? 0)
    if (port > 0 && port <= PORT_MAX) return [server]
    findings.fault(profile.child('servers')!.where, 'servers', 'expected host:port, or *', '', server)
    return []
  })
}
