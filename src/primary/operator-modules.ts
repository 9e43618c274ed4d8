/** Modules of the operator's that a node would load: whether they are there is said before any of it begins. */
import type { Configuration } from '../config/catalogue.ts'
import { type Fault, show } from '../config/fault.ts'
import { moduleFault } from '../config/module-file.ts'
import { identityPlan } from './identity-planning.ts'
import type { NodeParts } from './node-parts.ts'

/** A key, and the path that it names; '' where nothing is loaded. */
type Named = readonly [key: string, path: string]

export async function missingModules(
  configuration: Configuration,
  home: string,
  parts: Pick<NodeParts, 'runsGateway' | 'runsKeyManager'>,
): Promise<readonly Fault[]> {
  const named = [
    ...ofEveryNode(configuration),
    ...(parts.runsGateway ? ofReactors(configuration) : []),
    ...(parts.runsKeyManager ? ofKeyManagers(configuration) : []),
  ]
  const faults = await Promise.all(named.map(each => faultOf(each, home)))
  return faults.flatMap(fault => fault ?? [])
}

function ofEveryNode(configuration: Configuration): readonly Named[] {
  const { enable, enable_user_claims, generator_impl, claims_extractor_impl } = configuration['apim.jwt']
  return [
    ['apim.jwt.generator_impl', enable ? generator_impl : ''],
    ['apim.jwt.claims_extractor_impl', enable && enable_user_claims ? claims_extractor_impl : ''],
    ['apim.token.revocation.notifier_impl', configuration['apim.token.revocation'].notifier_impl],
  ]
}

function ofReactors(configuration: Configuration): readonly Named[] {
  return [['apim.key_manager.key_validation_handler_impl', identityPlan(configuration).validator]]
}

function ofKeyManagers(configuration: Configuration): readonly Named[] {
  return [
    ['oauth.extensions.token_generator', configuration.oauth['extensions.token_generator']],
    ['oauth.oidc.extensions.id_token_builder', configuration.oauth['oidc.extensions.id_token_builder']],
    ['oauth.oidc.extensions.claim_callback_handler', configuration.oauth['oidc.extensions.claim_callback_handler']],
    [
      'oauth.oidc.extensions.user_info_claim_retriever',
      configuration.oauth['oidc.extensions.user_info_claim_retriever'],
    ],
  ]
}

async function faultOf([key, path]: Named, home: string): Promise<Fault | undefined> {
  const expected = path === '' ? '' : await moduleFault(home, path)
  if (expected === '') return undefined
  return { where: '', key, given: show(path), expected, remedy: 'name an ES module from the home folder on' }
}
