/** `/oauth2/token` (RFC 6749 3.2): authenticates the client and runs the grant that it requests. */
import { METRIC } from '../../observe/metrics.ts'
import { authenticateAndCountClient } from './authentication.ts'
import type { Form } from './form.ts'
import {
  authorizationCodeGrant,
  clientCredentialsGrant,
  type GrantRequest,
  jwtBearerGrant,
  passwordGrant,
  refreshTokenGrant,
} from './grants.ts'
import type { KeyManager } from './key-manager.ts'
import { isRefusal, OAuthError } from './oauth-error.ts'
import type { KeyManagerSettings } from './settings.ts'
import type { TokenResponse } from './token-issuance.ts'

interface GrantType {
  isEnabled(settings: KeyManagerSettings): boolean
  run(request: GrantRequest): Promise<TokenResponse>
}

const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
/** The name by which clients of the reference platform register the JWT bearer grant. */
const JWT_BEARER_ALIAS = 'jwt_bearer'

const GRANT_TYPES: Readonly<Record<string, GrantType>> = {
  client_credentials: { isEnabled: it => it.grants.clientCredentials, run: clientCredentialsGrant },
  password: { isEnabled: it => it.grants.password, run: passwordGrant },
  refresh_token: { isEnabled: it => it.grants.refreshToken, run: refreshTokenGrant },
  authorization_code: { isEnabled: it => it.grants.authorizationCode, run: authorizationCodeGrant },
  [JWT_BEARER]: { isEnabled: it => it.grants.jwtBearer, run: jwtBearerGrant },
}

/** Values of `grant_type` that a client can be registered for: all built-in ones, and those of modules. */
export function knownGrants({ grantModules }: KeyManagerSettings): readonly string[] {
  return [...new Set([...Object.keys(GRANT_TYPES), ...grantModules.map(({ grantType }) => grantType)])]
}

/** Values of `grant_type` that the configuration enables. */
export function enabledGrants(settings: KeyManagerSettings): readonly string[] {
  const ofModules = settings.grantModules.filter(({ handler }) => handler !== '').map(({ grantType }) => grantType)
  const builtIn = Object.keys(GRANT_TYPES).filter(name => GRANT_TYPES[name]!.isEnabled(settings))
  return [...new Set([...builtIn, ...ofModules])]
}

type Result = 'issued' | 'refused' | 'failed'

/** Metrics by grant type; that of a module, and an unknown one, is another grant. */
const COUNTS: Readonly<Record<string, Readonly<Record<Result, number>>>> = {
  client_credentials: {
    issued: METRIC.clientCredentialsIssued,
    refused: METRIC.clientCredentialsRefused,
    failed: METRIC.clientCredentialsFailed,
  },
  password: {
    issued: METRIC.passwordGrantIssued,
    refused: METRIC.passwordGrantRefused,
    failed: METRIC.passwordGrantFailed,
  },
  refresh_token: {
    issued: METRIC.refreshTokenIssued,
    refused: METRIC.refreshTokenRefused,
    failed: METRIC.refreshTokenFailed,
  },
  authorization_code: {
    issued: METRIC.authorizationCodeIssued,
    refused: METRIC.authorizationCodeRefused,
    failed: METRIC.authorizationCodeFailed,
  },
  [JWT_BEARER]: {
    issued: METRIC.jwtBearerIssued,
    refused: METRIC.jwtBearerRefused,
    failed: METRIC.jwtBearerFailed,
  },
}
const OTHER_GRANT = {
  issued: METRIC.otherGrantIssued,
  refused: METRIC.otherGrantRefused,
  failed: METRIC.otherGrantFailed,
}

/** Rejects with OAuthError and registry errors, and counts what becomes of the request. */
export async function tokenResponse(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<TokenResponse> {
  const name = form.text('grant_type')
  const count = (result: Result) => {
    manager.metrics.add((Object.hasOwn(COUNTS, name) ? COUNTS[name]! : OTHER_GRANT)[result], 1)
  }
  try {
    const response = await grantedTokens(manager, request, form, address)
    count('issued')
    return response
  } catch (error) {
    count(isRefusal(error) ? 'refused' : 'failed')
    throw error
  }
}

/** Rejects with OAuthError and registry errors. */
async function grantedTokens(
  manager: KeyManager,
  request: Request,
  form: Form,
  address: string,
): Promise<TokenResponse> {
  const client = await authenticateAndCountClient(manager, request, form, address)
  const name = form.required('grant_type')
  const type = Object.hasOwn(GRANT_TYPES, name) ? GRANT_TYPES[name] : undefined
  const run = manager.grantModules.handlerOf(name) ?? type?.run
  if (run === undefined || !enabledGrants(manager.settings).includes(name)) {
    throw new OAuthError('unsupported_grant_type', 'the grant type is unknown or disabled')
  }
  const isRegistered = client.grants.includes(name) || (name === JWT_BEARER && client.grants.includes(JWT_BEARER_ALIAS))
  if (!isRegistered) throw new OAuthError('unauthorized_client', 'the client is not registered for this grant type')
  const grant = { manager, client, form, address }
  await manager.grantModules.validate(name, grant)
  return run(grant)
}
