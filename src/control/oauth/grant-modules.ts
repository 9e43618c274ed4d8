/**
 * Modules of the operator for grant types (`[oauth.grant_type.<name>]`), ES modules inside the configuration folder:
 *
 *   grant_validator   validateGrant({ grantType, client, parameters }) returns true, or a text that says why not
 *   grant_handler     handleGrant({ grantType, client, parameters }) returns { user, scopes }, or null
 *
 * A handler takes the place of the built-in grant, or is the grant where there is none. `user` is an account of the
 * client's tenant, or somebody whom the module vouches for, without roles here; without `user`, the token is one of the
 * application. Null refuses the request. `parameters` has no secret of the client.
 */
import { loadModule } from '../../config/module-file.ts'
import type { GrantRequest } from './grants.ts'
import { callModule, type Exported, moduleError } from './module-call.ts'
import { OAuthError } from './oauth-error.ts'
import { readScopes } from './scopes.ts'
import type { GrantModulePaths } from './settings.ts'
import { applicationSubject, federatedSubject, type Subject, userSubject } from './subjects.ts'
import { issueTokens, mayRefresh, type TokenResponse } from './token-issuance.ts'

const DESCRIPTION_CHARS_MAX = 200
/** Parameters that authenticate the client (RFC 6749 2.3.1, RFC 7521 4.2). */
const CREDENTIALS = ['client_id', 'client_secret', 'client_assertion', 'client_assertion_type']

interface Modules {
  readonly handler: Exported | null
  readonly validator: Exported | null
}

export class GrantModules {
  /** Value of `grant_type` -> its modules. */
  readonly #modules: ReadonlyMap<string, Modules>

  private constructor(modules: ReadonlyMap<string, Modules>) {
    this.#modules = modules
  }

  /** Rejects with ModuleError. */
  static async load(folder: string, paths: readonly GrantModulePaths[]): Promise<GrantModules> {
    const load = (path: string, name: string) => (path === '' ? null : loadModule(folder, path, name))
    const modules = new Map<string, Modules>()
    for (const { grantType, handler, validator } of paths) {
      modules.set(grantType, {
        handler: await load(handler, 'handleGrant'),
        validator: await load(validator, 'validateGrant'),
      })
    }
    return new GrantModules(modules)
  }

  /** Rejects with OAuthError where the validator refuses the request or fails. */
  async validate(grantType: string, request: GrantRequest): Promise<void> {
    const validator = this.#modules.get(grantType)?.validator ?? null
    if (validator === null) return
    const result = await called('validateGrant', validator, grantType, request)
    if (result === true) return
    throw new OAuthError('invalid_request', typeof result === 'string' ? shown(result) : 'the request is not valid')
  }

  /** Undefined without a handler. */
  handlerOf(grantType: string): ((request: GrantRequest) => Promise<TokenResponse>) | undefined {
    const handler = this.#modules.get(grantType)?.handler ?? null
    return handler === null ? undefined : request => runHandler(grantType, handler, request)
  }
}

async function runHandler(grantType: string, handler: Exported, request: GrantRequest): Promise<TokenResponse> {
  const { manager, client, form } = request
  const requested = readScopes(form.text('scope'))
  const result = await called('handleGrant', handler, grantType, request)
  if (result === null) throw new OAuthError('invalid_grant', 'the grant is refused')
  const { user, scopes = requested } = result as { readonly user?: unknown; readonly scopes?: unknown }
  const isList = Array.isArray(scopes) && scopes.every(scope => typeof scope === 'string')
  if (typeof result !== 'object' || !isList || (user !== undefined && (typeof user !== 'string' || user === ''))) {
    throw moduleError('handleGrant', 'the result is neither null nor { user, scopes }')
  }
  const subject = await subjectOf(request, grantType, user)
  return issueTokens(manager, {
    client,
    subject,
    scopes: manager.scopePolicy.grant(readScopes(scopes.join(' ')), subject),
    family: '',
    withRefreshToken: !subject.isApplication && mayRefresh(manager, client),
    withIdToken: !subject.isApplication,
    nonce: '',
    authenticatedS: 0,
  })
}

/** Rejects with OAuthError for an account that is locked. */
async function subjectOf(
  { manager, client }: GrantRequest,
  grantType: string,
  user: string | undefined,
): Promise<Subject> {
  if (user === undefined) return applicationSubject(manager, client)
  const account = await manager.registry.users.find(user, client.tenant)
  if (account === null) return federatedSubject(grantType, user, client.tenant)
  if (account.isLocked) throw new OAuthError('invalid_grant', 'the grant is refused')
  return userSubject(account)
}

async function called(name: string, module: Exported, grantType: string, request: GrantRequest): Promise<unknown> {
  const { client, form } = request
  const parameters = Object.fromEntries([...form.entries()].filter(([key]) => !CREDENTIALS.includes(key)))
  return callModule(name, module, { grantType, client: client.consumerKey, parameters })
}

/** RFC 6749 5.2: printable ASCII without quotes and backslashes. */
function shown(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]|["\\]/g, ' ').slice(0, DESCRIPTION_CHARS_MAX)
}
