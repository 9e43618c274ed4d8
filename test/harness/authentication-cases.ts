/** Fault cases of authentication and authorisation; the opaque token of each request selects the case. */
import type { ResourceDefinition } from '../../src/apis/api-definition.ts'
import type { IntrospectionResult } from '../../src/auth/control-protocol.ts'
import type { AuthState } from '../../src/auth/auth-state.ts'
import { NO_ACCESS } from './api-plan.ts'
import type { FaultCase } from './fault-cases.ts'
import type { GatewayOptions, TestApi } from './gateway.ts'
import { OWN_ISSUER, ScriptedControl } from './scripted-control.ts'

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
    name: 'a token that cannot be checked',
    request: withToken('down'),
    fields: {},
  },
  {
    ...row(900901, UNAUTHORISED, 'Invalid credentials', 'Make sure you have provided the correct security credentials'),
    name: 'an invalid token',
    request: withToken('bad'),
  },
  {
    ...row(900902, UNAUTHORISED, 'Missing credentials', ''),
    description: "Make sure your request has a header: 'Authorization: Bearer ACCESS_TOKEN'",
    name: 'a request without credentials',
    request: 'GET /tokens/any HTTP/1.1\r\nHost: a\r\n%\r\n',
  },
  {
    ...row(900905, UNAUTHORISED, 'Incorrect access token type', 'Incorrect Access Token Type is provided'),
    name: 'a user token at an application resource',
    request: withToken('shop', '/application'),
  },
  {
    ...row(900907, UNAUTHORISED, 'Requested API temporarily blocked', 'The requested API is temporarily blocked'),
    name: 'a blocked subscription',
    request: withToken('blocked'),
  },
  {
    ...row(900908, FORBIDDEN, 'Resource forbidden', NO_SUBSCRIPTION),
    name: 'an application without a subscription',
    request: withToken('stranger'),
    fields: {},
  },
  {
    ...row(900909, UNAUTHORISED, 'Subscription inactive', 'The subscription to the API is inactive'),
    name: 'a subscription that is not yet approved',
    request: withToken('held'),
  },
  {
    ...row(900910, FORBIDDEN, 'Token does not allow access to the resource', NO_SCOPE),
    name: 'a token without the scope',
    request: withToken('shop', '/scoped'),
  },
  {
    ...row(900911, UNAUTHORISED, 'Internal Server Error', 'The credentials could not be validated'),
    name: 'a custom validator with an invalid result',
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
    overrides: { access: { ...NO_ACCESS, api: API, schemes: ['oauth2'] }, resources },
  }
}

export const SECURED: Pick<GatewayOptions, 'authChanges' | 'customValidator'> = {
  authChanges: { issuers: [OWN_ISSUER] },
  customValidator: ({ token, builtIn }) => (token.consumerKey === 'odd' ? 'what?' : builtIn),
}

/** Loads subscriptions and token introspection; the name of a token is its consumer key. */
export function prepareCases(state: AuthState): void {
  const control = new ScriptedControl(state)
  for (const [name, status] of [
    ['shop', 'ACTIVE'],
    ['odd', 'ACTIVE'],
    ['blocked', 'BLOCKED'],
    ['held', 'ON_HOLD'],
  ] as const) {
    control.subscribe(name, API, status)
  }
  control.handlers = {
    introspect: ({ token }): IntrospectionResult => {
      if (token === 'down') throw new Error('no connection')
      const result = { issuer: OWN_ISSUER.issuer, consumerKey: token, user: 'alice', isApplication: false }
      return token === 'bad' ? null : { ...result, scopes: [], notBeforeMs: 0, expiresMs: 0, claims: {} }
    },
  }
}
