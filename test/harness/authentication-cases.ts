/** The codes of authentication among those that a client can be answered by: by opaque tokens that say which. */
import type { ResourceDefinition } from '../../src/config/api-definition.ts'
import type { Introspection } from '../../src/identity/feed.ts'
import type { IdentityState } from '../../src/identity/identity-state.ts'
import { NO_ACCESS } from './api-plan.ts'
import type { FaultCase } from './fault-cases.ts'
import type { MorePlan, TestApi } from './gateway.ts'
import { OWN_ISSUER, ScriptedAuthority } from './scripted-authority.ts'

const API = 'tokens:1.0.0'
const REFUSED = {
  sequence: '_auth_failure_handler_',
  fields: { 'www-authenticate': /^Bearer realm="Sluice"/ },
} as const

function row(code: number, status: string, message: string, description: string): Omit<FaultCase, 'name' | 'request'> {
  return { code, status, message, description, ...REFUSED }
}

function withToken(token: string, resource = '/any'): string {
  return `GET /tokens${resource} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n%\r\n`
}

const UNAUTHORISED = '401 Unauthorized'
const FORBIDDEN = '403 Forbidden'
const NOT_CHECKED = 'Unclassified Authentication Failure'
const NO_SUBSCRIPTION = 'User is NOT authorized to access the Resource. API Subscription validation failed.'
const NO_SCOPE = 'User is NOT authorized to access the Resource. Scope validation failed.'

export const AUTHENTICATION_CASES: readonly FaultCase[] = [
  {
    ...row(900900, '500 Internal Server Error', 'Unclassified authentication failure', NOT_CHECKED),
    name: 'nobody says whether a token is good',
    request: withToken('down'),
    fields: {},
  },
  {
    ...row(900901, UNAUTHORISED, 'Invalid credentials', 'Make sure you have provided the correct security credentials'),
    name: 'a token that is not good',
    request: withToken('bad'),
  },
  {
    ...row(900902, UNAUTHORISED, 'Missing credentials', ''),
    description: "Make sure your request has a header: 'Authorization: Bearer ACCESS_TOKEN'",
    name: 'no credentials',
    request: 'GET /tokens/any HTTP/1.1\r\nHost: a\r\n%\r\n',
  },
  {
    ...row(900905, UNAUTHORISED, 'Incorrect access token type', 'Incorrect Access Token Type is provided'),
    name: 'a user where an application is asked for',
    request: withToken('shop', '/application'),
  },
  {
    ...row(900907, UNAUTHORISED, 'Requested API temporarily blocked', 'The requested API is temporarily blocked'),
    name: 'a subscription that is blocked',
    request: withToken('blocked'),
  },
  {
    ...row(900908, FORBIDDEN, 'Resource forbidden', NO_SUBSCRIPTION),
    name: 'no subscription',
    request: withToken('stranger'),
    fields: {},
  },
  {
    ...row(900909, UNAUTHORISED, 'Subscription inactive', 'The subscription to the API is inactive'),
    name: 'a subscription that is not approved yet',
    request: withToken('held'),
  },
  {
    ...row(900910, FORBIDDEN, 'Token does not allow access to the resource', NO_SCOPE),
    name: 'a token without the scope',
    request: withToken('shop', '/scoped'),
  },
  {
    ...row(900911, UNAUTHORISED, 'Internal Server Error', 'The credentials could not be validated'),
    name: 'a validator of the operator that answers nothing of use',
    request: withToken('odd'),
  },
]

function operation(template: string, authType: ResourceDefinition['authType'], scopes: readonly string[] = []) {
  return { template, verb: 'GET', authType, tier: 'Unlimited', scopes }
}

export function securedApi(port: number): TestApi {
  const both = 'Application & Application User'
  const resources = [
    operation('/any', both),
    operation('/application', 'Application'),
    operation('/scoped', both, ['read']),
  ]
  return {
    context: '/tokens',
    port,
    unlike: { access: { ...NO_ACCESS, subject: API, schemes: ['oauth2'] }, resources },
  }
}

export const SECURED: Pick<MorePlan, 'identityChanges' | 'ownValidator'> = {
  identityChanges: { issuers: [OWN_ISSUER] },
  ownValidator: ({ token }) => (token.consumerKey === 'odd' ? 'what?' : { allowed: true }),
}

/** Tokens are as the clients that they were given to. */
export function tellCases(identity: IdentityState): void {
  const authority = new ScriptedAuthority(identity)
  for (const [name, status] of [
    ['shop', 'ACTIVE'],
    ['odd', 'ACTIVE'],
    ['blocked', 'BLOCKED'],
    ['held', 'ON_HOLD'],
  ] as const) {
    authority.subscribe(name, API, status)
  }
  authority.answers = {
    introspect: ({ token }): Introspection => {
      if (token === 'down') throw new Error('no connection')
      const known = { issuer: OWN_ISSUER.issuer, consumerKey: token, user: 'alice', isApplication: false }
      return token === 'bad' ? null : { ...known, scopes: [], expiresMs: 0, claims: {} }
    },
  }
}
