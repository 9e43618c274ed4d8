/** `[apim.cache.*]`: what is remembered so that it need not be asked again, and for how long. */
import { allInert, except, type Key, live, type Rule, section } from '../key.ts'
import { duration, flag } from '../kinds.ts'
import { DAY_MS } from './passthru-keys.ts'

const SCOPES = 'the scopes of all APIs are in memory: there is nothing to look up'
const DEVELOPER_PORTAL = 'there is no developer portal'
const PUBLISHER = 'there is no publisher portal'

const DAY_S = 86_400

/** Seconds. */
function expiry(meaning: string): Key<number> {
  return duration(900, 's', 1, DAY_S, meaning)
}

/** Old files say 15 and mean minutes, new ones 900. */
const SECONDS: Rule<{ readonly expiry_time: number }> = {
  keys: ['expiry_time'],
  must: 'expiry_time counts seconds where it has no unit: for minutes write "15m"',
  severity: 'warning',
  holds: it => it.expiry_time === 0 || it.expiry_time >= 60,
}

export const gatewayTokenCache = section(
  'apim.cache.gateway_token',
  'What the gateway found out about a token.',
  {
    enable: live(
      flag(true, 'Remember what was found out about a token; use only one of this and `apim.cache.km_token`.'),
    ),
    expiry_time: live(expiry('How long that is remembered, and never beyond the end of the token itself.')),
  },
  { roles: ['gateway-worker'], rules: [SECONDS], readBy: ['primary/identity-planning.ts'] },
)

export const resourceCache = section(
  'apim.cache.resource',
  'Which resource of an API a request is for.',
  {
    enable: live(flag(true, 'Remember which resource a path leads to, where looking for it costs more.')),
    expiry_time: live(expiry('How long that is remembered.')),
  },
  { roles: ['gateway-worker'], rules: [SECONDS], readBy: ['primary/planning.ts'] },
)

export const keyManagerTokenCache = section(
  'apim.cache.km_token',
  'What the key manager found out about a token.',
  {
    enable: live(
      flag(
        false,
        'Remember what introspection found out about a token; use only one of this and `apim.cache.gateway_token`.',
      ),
    ),
    expiry_time: live(expiry('How long that is remembered.')),
  },
  { roles: ['api-key-manager'], rules: [SECONDS], readBy: ['keymanager/settings.ts'] },
)

export const recentApisCache = section(
  'apim.cache.recent_apis',
  'The APIs added last, for the list in the developer portal.',
  allInert({ enable: flag(false, 'Remember the latest APIs for 15 minutes.') }, DEVELOPER_PORTAL),
  { roles: ['api-devportal'] },
)

export const scopesCache = section(
  'apim.cache.scopes',
  'The scopes of an API.',
  allInert({ enable: flag(true, 'Remember scopes for 15 minutes.') }, SCOPES),
  { roles: ['api-key-manager', 'api-publisher'] },
)

export const publisherRolesCache = section(
  'apim.cache.publisher_roles',
  'The roles of those who publish APIs.',
  allInert({ enable: flag(true, 'Remember roles of publishers for 15 minutes.') }, PUBLISHER),
  { roles: ['api-publisher'] },
)

export const jwtClaimCache = section(
  'apim.cache.jwt_claim',
  'What is known of a user for the token that goes to backends.',
  {
    enable: live(flag(true, 'Remember what is known of a user.')),
    expiry_time: live(
      except(
        0,
        'as long as the token lasts',
        duration(0, 's', 1, DAY_S, 'How long that is remembered; give it the lifetime of the tokens.'),
      ),
    ),
  },
  { roles: ['api-key-manager', 'gateway-worker'], rules: [SECONDS], readBy: ['primary/backend-planning.ts'] },
)

export const tagsCache = section(
  'apim.cache.tags',
  'The tags of APIs, for the developer portal.',
  allInert(
    { expiry_time: except(0, 'not remembered', duration(120_000, 'ms', 1, DAY_MS, 'How long tags are remembered.')) },
    DEVELOPER_PORTAL,
  ),
  { roles: ['api-devportal'] },
)
