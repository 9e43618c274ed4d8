/** `[apim.cache.*]`: the caches and their lifetimes. */
import { either, isTrue } from '../conditions.ts'
import { actsIf, allActIf, allInert, withSpecialValue, type Key, live, type Rule, section } from '../key.ts'
import { duration, flag } from '../kinds.ts'
import { DAY_MS } from './passthru-keys.ts'

const SCOPES = 'the scopes of all APIs are always in memory'
const IN_MEMORY = 'the REST API of the developer portal lists APIs from memory'
const ROLES_READ = 'the roles of a caller are read with each request, so that a change holds at once'

const DAY_S = 86_400

/** Seconds. */
function expiry(meaning: string): Key<number> {
  return duration(900, 's', 1, DAY_S, meaning)
}

/** Old files have 15, which means minutes; new ones have 900. */
const SECONDS: Rule<{ readonly expiry_time: number }> = {
  keys: ['expiry_time'],
  must: 'expiry_time without a unit is in seconds: for minutes write "15m"',
  severity: 'warning',
  holds: it => it.expiry_time === 0 || it.expiry_time >= 60,
}

export const gatewayTokenCache = section(
  'apim.cache.gateway_token',
  'Cache of token validation results in the gateway.',
  {
    enable: live(flag(true, 'Cache validation results; enable only one of this cache and `apim.cache.km_token`.')),
    expiry_time: actsIf(
      either(isTrue('.enable'), isTrue('apim.jwt.enable')),
      live(expiry('Lifetime of an entry, which never exceeds the lifetime of the token; also that of a backend JWT.')),
    ),
  },
  { roles: ['gateway-worker'], rules: [SECONDS] },
)

export const resourceCache = section(
  'apim.cache.resource',
  'Cache of matched resources in the gateway.',
  {
    enable: live(flag(true, 'Cache the resource of a path where matching is expensive.')),
    expiry_time: actsIf(isTrue('.enable'), live(expiry('Lifetime of an entry.'))),
  },
  { roles: ['gateway-worker'], rules: [SECONDS] },
)

export const keyManagerTokenCache = section(
  'apim.cache.km_token',
  'Cache of introspection results in the key manager.',
  {
    enable: live(
      flag(false, 'Cache introspection results; enable only one of this cache and `apim.cache.gateway_token`.'),
    ),
    expiry_time: actsIf(isTrue('.enable'), live(expiry('Lifetime of an entry.'))),
  },
  { roles: ['api-key-manager'], rules: [SECONDS] },
)

export const recentApisCache = section(
  'apim.cache.recent_apis',
  'Cache of the APIs added last, for the developer portal.',
  allInert({ enable: flag(false, 'Cache the latest APIs for 15 minutes.') }, IN_MEMORY),
  { roles: ['api-devportal'] },
)

export const scopesCache = section(
  'apim.cache.scopes',
  'Cache of the scopes of an API.',
  allInert({ enable: flag(true, 'Cache scopes for 15 minutes.') }, SCOPES),
  { roles: ['api-key-manager', 'api-publisher'] },
)

export const publisherRolesCache = section(
  'apim.cache.publisher_roles',
  'Cache of the roles of publishers.',
  allInert({ enable: flag(true, 'Cache roles of publishers for 15 minutes.') }, ROLES_READ),
  { roles: ['api-publisher'] },
)

const USER_CLAIMS = either(isTrue('apim.jwt.enable_user_claims'), isTrue('apim.jwt.enable_claim_retrieval'))

export const jwtClaimCache = section(
  'apim.cache.jwt_claim',
  'Cache of user claims for the backend JWT.',
  allActIf(
    isTrue('apim.jwt.enable'),
    allActIf(USER_CLAIMS, {
      enable: live(flag(true, 'Cache user claims.')),
      expiry_time: actsIf(
        isTrue('.enable'),
        live(
          withSpecialValue(
            0,
            'the lifetime of the token',
            duration(0, 's', 1, DAY_S, 'Lifetime of an entry; set it to the lifetime of the tokens.'),
          ),
        ),
      ),
    }),
  ),
  { roles: ['gateway-worker'], rules: [SECONDS] },
)

export const tagsCache = section(
  'apim.cache.tags',
  'Cache of the tags of APIs, for the developer portal.',
  allInert(
    {
      expiry_time: withSpecialValue(0, 'not cached', duration(120_000, 'ms', 1, DAY_MS, 'Lifetime of an entry.')),
    },
    IN_MEMORY,
  ),
  { roles: ['api-devportal'] },
)
