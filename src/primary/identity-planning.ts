/** From configuration and API projects to what authentication is told: who issues tokens, and who may use an API. */
import { NO_SCHEME } from '../config/api-access.ts'
import type { ApiDefinition } from '../config/api-definition.ts'
import type { Configuration } from '../config/catalogue.ts'
import type { AccessPlan, AccessScheme, IdentityPlan } from '../identity/identity-plan.ts'

export function identityPlan(configuration: Configuration): IdentityPlan {
  const oauth = configuration['apim.oauth_config']
  const cache = configuration['apim.cache.gateway_token']
  return {
    issuers: [],
    authField: oauth.auth_header.toLowerCase(),
    passesAuthField: oauth.enable_outbound_auth_header,
    skewMs: configuration.oauth.timestamp_skew * 1000,
    verdictMs: cache.enable ? cache.expiry_time * 1000 : 0,
  }
}

export function accessPlan({ name, version, access }: ApiDefinition): AccessPlan {
  return {
    subject: `${name}:${version}`,
    authField: access.authHeader.toLowerCase(),
    schemes: schemesOf(access.securitySchemes),
    needsCertificate: false,
    needsOther: false,
    certificates: [],
    scopeRoles: {},
    provider: access.provider,
  }
}

function schemesOf(written: readonly string[]): readonly AccessScheme[] {
  return written.includes(NO_SCHEME) ? [] : ['oauth2']
}
