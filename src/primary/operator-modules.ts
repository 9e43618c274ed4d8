/** Checks that the operator's ES modules exist, before a node starts that would load them. */
import type { Configuration } from '../config/catalogue.ts'
import { type Diagnostic, formatValue } from '../config/diagnostics.ts'
import { isJavaClass, moduleProblem } from '../config/module-file.ts'
import { namedFormats } from '../mediation/formats/format-settings.ts'
import { authPlan } from '../plan/auth-planning.ts'
import type { NodeComponents } from '../plan/node-components.ts'
import { enabledHandlers } from '../plan/reactor-planning.ts'

/** A key and the path that it names; '': no module. */
type Named = readonly [key: string, path: string]

export async function moduleDiagnostics(
  configuration: Configuration,
  home: string,
  parts: Pick<NodeComponents, 'runsGateway' | 'runsKeyManager'>,
): Promise<{ readonly errors: readonly Diagnostic[]; readonly warnings: readonly Diagnostic[] }> {
  const named = [
    ...modulesOfEveryNode(configuration),
    ...(parts.runsGateway ? [...modulesOfReactors(configuration), ...modulesOfWorkers(configuration)] : []),
    ...(parts.runsKeyManager ? modulesOfKeyManagers(configuration) : []),
  ]
  const errors = await Promise.all(named.map(each => diagnosticOf(each, home)))
  const formats = parts.runsGateway ? formatModules(configuration).filter(isOfJava) : []
  const grants = parts.runsKeyManager ? grantModules(configuration).filter(isOfJava) : []
  return {
    errors: errors.flatMap(diagnostic => diagnostic ?? []),
    warnings: [
      ...grants.map(named => javaWarning(named, 'the grant is refused')),
      ...(parts.runsGateway ? handlerWarnings(configuration) : []),
      ...formats.map(named => javaWarning(named, 'the built-in builder or formatter of the type acts')),
    ],
  }
}

function isOfJava([, path]: Named): boolean {
  return isJavaClass(path)
}

/** A home of the reference platform starts as it is, but for what its Java classes would do. */
function javaWarning([key, path]: Named, result: string): Diagnostic {
  const expected = `is a Java class, which cannot be loaded: ${result}`
  return { where: '', key, given: formatValue(path), expected, hint: 'name an ES module from the home folder on' }
}

function classKey({ synapse_handlers: rows }: Configuration, name: string): string {
  return `synapse_handlers[${rows.findIndex(row => row.name === name)}].class`
}

/** Handlers that are named and do not run. */
function handlerWarnings(configuration: Configuration): readonly Diagnostic[] {
  const { synapse_handlers: rows } = configuration
  return configuration[''].enabled_global_handlers.flatMap((name): readonly Diagnostic[] => {
    const row = rows.find(row => row.name === name)
    if (row === undefined) {
      const expected = 'names a handler that is not declared'
      const hint = 'add [[synapse_handlers]] with this name'
      return [{ where: '', key: 'enabled_global_handlers', given: formatValue(name), expected, hint }]
    }
    const isLeftOut = row.enabled && isJavaClass(row.class)
    return isLeftOut ? [javaWarning([classKey(configuration, name), row.class], 'the handler is left out')] : []
  })
}

/** Message builders and formatters. */
function formatModules(configuration: Configuration): readonly Named[] {
  const sides = ['builders', 'formatters'] as const
  return (['', 'blocking.'] as const).flatMap(of =>
    sides.flatMap(side => namedFormats(configuration, side, of).map(({ key, path }) => [key, path] as const)),
  )
}

function modulesOfWorkers(configuration: Configuration): readonly Named[] {
  return formatModules(configuration).filter(named => !isOfJava(named))
}

/** Modules of the grant types that are enabled. */
function grantModules(configuration: Configuration): readonly Named[] {
  const grants: Readonly<Record<string, unknown>> = configuration['oauth.grant_type']
  return Object.keys(grants).flatMap((key): readonly Named[] => {
    const name = /^(.+)\.grant_(?:handler|validator)$/.exec(key)?.[1]
    return name === undefined || grants[`${name}.enable`] !== true
      ? []
      : [[`oauth.grant_type.${key}`, String(grants[key])]]
  })
}

function modulesOfEveryNode(configuration: Configuration): readonly Named[] {
  const { enable, enable_user_claims, generator_impl, claims_extractor_impl } = configuration['apim.jwt']
  return [
    ['apim.jwt.generator_impl', enable ? generator_impl : ''],
    ['apim.jwt.claims_extractor_impl', enable && enable_user_claims ? claims_extractor_impl : ''],
    ['apim.token.revocation.notifier_impl', configuration['apim.token.revocation'].notifier_impl],
  ]
}

function modulesOfReactors(configuration: Configuration): readonly Named[] {
  const handlers = enabledHandlers(configuration)
  return [
    ['apim.key_manager.key_validation_handler_impl', authPlan(configuration).validator],
    ...handlers.map(({ name, path }) => [classKey(configuration, name), path] as const),
  ]
}

function modulesOfKeyManagers(configuration: Configuration): readonly Named[] {
  const checkers = configuration.carbon_health_check.enable ? configuration.health_checker : []
  return [
    ...grantModules(configuration).filter(named => !isOfJava(named)),
    ...checkers.map(({ name }, row) => [`health_checker[${row}].name`, name] as const),
    ['oauth.extensions.token_generator', configuration.oauth['extensions.token_generator']],
    ['oauth.oidc.extensions.id_token_builder', configuration.oauth['oidc.extensions.id_token_builder']],
    ['oauth.oidc.extensions.claim_callback_handler', configuration.oauth['oidc.extensions.claim_callback_handler']],
    [
      'oauth.oidc.extensions.user_info_claim_retriever',
      configuration.oauth['oidc.extensions.user_info_claim_retriever'],
    ],
  ]
}

async function diagnosticOf([key, path]: Named, home: string): Promise<Diagnostic | undefined> {
  const expected = path === '' ? '' : await moduleProblem(home, path)
  if (expected === '') return undefined
  return { where: '', key, given: formatValue(path), expected, hint: 'name an ES module from the home folder on' }
}
