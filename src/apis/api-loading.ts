/** Loads the APIs of a home, selects those of this gateway's environments, and checks each with the configuration. */
import type { Configuration } from '../config/catalogue.ts'
import { type Diagnostic, formatValue } from '../config/diagnostics.ts'
import { idleAggregates } from '../mediation/aggregate-ids.ts'
import type { SequenceSet } from '../mediation/sequence-files.ts'
import { missingParameter, templateName, unknownParameters } from '../mediation/sequence-templates.ts'
import { MANDATORY, SCHEMES } from './api-access.ts'
import { corsCredentialsWarning } from './api-cors.ts'
import { type ApiDefinition, endpointsOf, type MediationDefinition } from './api-definition.ts'
import type { ApiProjects, LoadedApis } from './api-projects.ts'
import type { ReadingThread } from './project-reading.ts'
import { gatewayEnvironment } from './gateway-environments.ts'

/**
 * `runsGateway`: false on a node with a key manager alone, which issues tokens for the APIs of every gateway.
 * `active`: the deployed APIs; a project that has errors now keeps its deployed API. `thread` reads what takes long.
 * `sequences`: those of the home, which sequences of projects may run.
 */
export async function loadApis(
  projects: ApiProjects,
  configuration: Configuration,
  runsGateway: boolean,
  active: LoadedApis['projects'],
  thread?: ReadingThread,
  sequences: SequenceSet['files'] = new Map(),
): Promise<LoadedApis> {
  const read = await projects.read(thread)
  if (!runsGateway) return projects.load(undefined, active, undefined, read)
  const environment = gatewayEnvironment(configuration)
  const check = (api: ApiDefinition) => missingSender(api, configuration) ?? missingCall(api, sequences)
  const loaded = projects.load(check, active, environment, read)
  const checks = [corsCredentialsWarning, certificateWarning]
  const warnings = loaded.apis.flatMap(api => [
    ...checks.flatMap(check => check(api, configuration) ?? []),
    ...unknownParametersOf(api, sequences),
  ])
  return { ...loaded, warnings: [...loaded.warnings, ...warnings, ...idleAggregatesOf(loaded.apis, sequences)] }
}

/** A response flow of the home may gather copies that a flow of an API makes, and the other way round. */
function idleAggregatesOf(apis: readonly ApiDefinition[], home: SequenceSet['files']): readonly Diagnostic[] {
  const ofHome = [...home.values()].map(({ plan }) => plan)
  return idleAggregates([...ofHome, ...apis.flatMap(({ mediation }) => mediation?.sequences ?? [])])
}

/**
 * Why an API with a WebSocket backend is not deployed: `ws://` needs the sender of `[transport.ws]`, `wss://` that of
 * `[transport.wss]`. Both are off by default, as on the reference platform. Upgrades to http and https need neither.
 */
export function missingSender(api: ApiDefinition, configuration: Configuration): Diagnostic | undefined {
  const senders = [
    ['ws://', 'transport.ws', configuration['transport.ws']['sender.enable']],
    ['wss://', 'transport.wss', configuration['transport.wss']['sender.enable']],
  ] as const
  const urls = endpointsOf(api).map(({ url }) => url.toLowerCase())
  const missing = senders.find(([start, , isEnabled]) => !isEnabled && urls.some(url => url.startsWith(start)))
  if (missing === undefined) return undefined
  const [start, section] = missing
  const expected = `a ${start} backend needs the sender of [${section}], which is off`
  return diagnosticOf(api, expected, `set ${section}.sender.enable = true`)
}

/** Why an API that runs a sequence that does not exist is not deployed. */
function missingCall({ mediation }: ApiDefinition, home: SequenceSet['files']): Diagnostic | undefined {
  if (mediation === null) return undefined
  const absent = mediation.ofHome?.find(({ name }) => !home.has(name))
  if (absent !== undefined) return absent.missing
  const own = new Set(mediation.sequences.map(({ name }) => name))
  for (const { label, calls } of mediation.sequences) {
    const missing = calls.find(name => !own.has(name) && !home.has(name))
    if (missing === undefined) continue
    const template = templateName(missing)
    const [kind, at] = template === undefined ? ['sequence', 'key'] : ['template', 'target']
    const expected = `there is no ${kind} of this name`
    const hint = `add it to Sequences/ of the project, or to synapse-configs/default/${kind}s`
    return { where: label, key: `${kind} ${at}`, given: formatValue(template ?? missing), expected, hint }
  }
  const lookup = lookupFor(mediation, home)
  return mediation.sequences.map(plan => missingParameter(plan, lookup)).find(found => found !== undefined)
}

/** Finds sequences and templates of a project, else those of the home. */
function lookupFor({ sequences }: MediationDefinition, home: SequenceSet['files']) {
  const own = new Map(sequences.map(plan => [plan.name, plan]))
  return (name: string) => own.get(name) ?? home.get(name)?.plan
}

/** Parameters that templates do not have, in sequences of an API. */
function unknownParametersOf({ mediation }: ApiDefinition, home: SequenceSet['files']): readonly Diagnostic[] {
  return mediation?.sequences.flatMap(plan => unknownParameters(plan, lookupFor(mediation, home))) ?? []
}

const VERIFY_CLIENT = 'listener.parameters.SSLVerifyClient'

/** Warns of an API with the scheme mutualssl if no client can be known by a certificate. */
function certificateWarning(api: ApiDefinition, configuration: Configuration): Diagnostic | undefined {
  const isAsked = api.access.securitySchemes.some(
    scheme => SCHEMES[scheme] === 'mutual_tls' || scheme === MANDATORY.certificate,
  )
  if (!isAsked) return undefined
  if (api.clientCertificates.length === 0) {
    const expected = 'has the security scheme mutualssl, and its project lists no client certificate'
    return diagnosticOf(api, expected, 'list them in Client-certificates/client_certificates.yaml')
  }
  const https = configuration['transport.passthru_https']
  const verify = https[VERIFY_CLIENT].toLowerCase()
  // A TLS profile may ask for certificates even if the listener does not.
  if ((verify !== '' && verify !== 'none') || https['listener.ssl_profile.file_path'] !== '') return undefined
  const expected = 'has the security scheme mutualssl, and no listener asks for a client certificate'
  return diagnosticOf(api, expected, `set transport.passthru_https.${VERIFY_CLIENT} to optional or require`)
}

function diagnosticOf({ name, version }: ApiDefinition, expected: string, hint: string): Diagnostic {
  return { where: `API ${name} ${version}`, key: '', given: '', expected, hint }
}
