/** Admin API over its own registry, with given APIs and unsigned tokens. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NOTHING_DECLARED } from '../../../src/auth/records.ts'
import { adminApps } from '../../../src/control/admin-api/admin-api.ts'
import type { ApiKeyRequest, ManagedApi, AdminServices } from '../../../src/control/admin-api/admin-services.ts'
import { ManagementCommands } from '../../../src/control/admin-api/commands.ts'
import { Registry } from '../../../src/control/registry/registry.ts'
import type { PolicySet } from '../../../src/throttle/policy.ts'
import { NO_THROTTLING } from '../../../src/throttle/throttle-plan.ts'
import { loadConfiguration } from '../../harness/configuration.ts'
import type { RealDatabase } from '../registry/real-databases.ts'

const SUPER_ADMIN = '[super_admin]\nusername = "admin"\npassword = "an-admin-password"\n'
const ISSUER = 'https://localhost:9443/oauth2/token'
const TENANT = 'carbon.super'

function apiCalled(name: string, more: Partial<ManagedApi> = {}): ManagedApi {
  return {
    ...{ name, version: '1.0.0', context: `/${name}/1.0.0`, provider: 'admin', state: 'PUBLISHED', since: '' },
    hosts: [],
    ...{ actions: ['Block', 'Deprecate'], tiers: [], transports: ['http', 'https'], isDefaultVersion: false },
    ...{ operations: [], tier: '' },
    ...more,
  }
}

/** A JSON response: the members that tests read, of any type. */
type Shape = string & { readonly [M in Member]: Shape }
type Member =
  | (
      | 0
      | 'accessToken'
      | 'active'
      | 'apiInfo'
      | 'apikey'
      | 'applicationId'
      | 'availableTransitions'
      | 'code'
      | 'consumerKey'
      | 'keyMappingId'
      | 'keyState'
      | 'keyType'
      | 'requestedThrottlingPolicy'
      | 'workflowStatus'
    )
  | (
      | 'consumerSecret'
      | 'count'
      | 'createdTime'
      | 'description'
      | 'error'
      | 'id'
      | 'issuer'
      | 'keyMappingId'
      | 'lifecycleState'
      | 'limit'
    )
  | ('list' | 'message' | 'mode' | 'name' | 'pagination' | 'Resources' | 'state' | 'status' | 'subscriptionId')
  | ('throttlingPolicy' | 'token' | 'total' | 'userName')

interface TestRequest {
  readonly body?: unknown
  /** '' for no header. */
  readonly authorization?: string
  readonly headers?: Readonly<Record<string, string>>
}

function unsignedTokens(): AdminServices['tokens'] {
  const keys = new Map<string, { jti: string; applicationId: string; expiresMs: number }>()
  return {
    issueToken: async (client, scopes) => ({ token: `token of ${client.consumerKey}`, scopes, validityS: 3600 }),
    issueApiKey: async ({ application, validityS }: ApiKeyRequest) => {
      const expiresMs = Date.now() + (validityS === -1 ? 9e9 : validityS * 1000)
      const key = `key ${keys.size}`
      keys.set(key, { jti: randomUUID(), applicationId: application.id, expiresMs })
      return { key, expiresMs }
    },
    verifyApiKey: async key => keys.get(key) ?? null,
    grants: ['client_credentials', 'refresh_token', 'authorization_code'],
    issuer: ISSUER,
  }
}

const PORTAL_SETTINGS: AdminServices['portal'] = {
  environments: [],
  tokenEndpoint: 'https://gateway.example/token',
  revokeEndpoint: 'https://gateway.example/revoke',
  showsDeprecatedApis: false,
  showsAllVersions: false,
}

const DECLARED: AdminServices['declared'] = {
  ...NOTHING_DECLARED,
  applications: [{ id: 'file', name: 'Declared', owner: 'admin', tenant: TENANT, tier: 'Unlimited', attributes: {} }],
  keys: [{ issuer: ISSUER, consumerKey: 'declared-key', applicationId: 'file', keyType: 'PRODUCTION' }],
}

/** Nothing waits for approval; `woken` counts the calls of the engine. */
function noApprovals() {
  const approvals = {
    subscriptions: false,
    applications: false,
    keys: false,
    callsEngine: true,
    woken: 0,
    wake() {
      approvals.woken++
    },
  }
  return approvals
}

/** Policies of the home's files. */
const FILES: PolicySet = {
  policies: [
    {
      ...{ level: 'application', name: 'FromFile', scope: 'node', failMode: 'local' },
      quota: { type: 'requests', limit: 3, unit: 'hour', units: 2, window: 'tumbling' },
    },
  ],
  denied: [
    { id: '00000000-0000-8000-8000-000000000001', type: 'USER', value: 'mallory', inverted: false, enabled: true },
  ],
}

/** `database`: of the registry; left out: a file of its own. */
export async function startAdminApi(database?: RealDatabase) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-management-'))
  writeFileSync(join(folder, 'deployment.toml'), SUPER_ADMIN)
  const { configuration } = loadConfiguration(folder, [], folder)
  const own = { configuration, dataDir: folder, issuer: ISSUER }
  const registry = await (database === undefined ? Registry.open(own) : database.open(SUPER_ADMIN))
  const { client } = await registry.clients.create({
    ...{ name: 'operator', applicationId: null, keyType: 'PRODUCTION', owner: 'admin', tenant: TENANT },
    ...{ grants: ['password'], redirectUris: [], isPublic: false, tokenType: 'JWT', validityS: 0 },
  })
  const apis = [apiCalled('Orders', { tiers: ['Gold', 'Silver'] }), apiCalled('Drafts', { state: 'CREATED' })]
  const reports: string[] = []
  const approvals = noApprovals()
  const services: AdminServices = {
    registry,
    apis: {
      list: async () => apis,
      change: async ({ name, action }) => {
        const at = apis.findIndex(api => `${api.name}:${api.version}` === name)
        if (action !== 'Block') throw new Error('the transition is not allowed')
        apis[at] = { ...apis[at]!, state: 'BLOCKED' }
        return 'BLOCKED'
      },
    },
    tokens: unsignedTokens(),
    declared: DECLARED,
    throttling: { ...NO_THROTTLING, files: FILES },
    approvals,
    notices: null,
    portal: PORTAL_SETTINGS,
    hasScim: true,
    adminName: 'admin',
    origin: 'https://localhost:9443',
    report: (_level, event, fields) => void reports.push(`${event} ${JSON.stringify(fields)}`),
    nowMs: Date.now,
  }
  const apps = adminApps(() => services, '/own/callback')
  const commands = new ManagementCommands(() => services)
  const fetch = async (method: string, path: string, { body, authorization, headers = {} }: TestRequest = {}) => {
    const app = apps.find(({ paths }) => paths.some(one => path.startsWith(one)))!
    const request = new Request(`https://localhost:9443${path}`, {
      method,
      headers: {
        ...(authorization === '' ? {} : { authorization: authorization ?? `Bearer ${await tokenOf('admin')}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const answer = await app.fetch(request, { clientAddress: '127.0.0.1' })
    const text = await answer.text()
    const json = (text === '' ? {} : JSON.parse(text)) as Shape
    return { status: answer.status, headers: answer.headers, json, text }
  }
  /** Issues a token, with all scopes by default. */
  async function tokenOf(user: string, scopes: readonly string[] = ALL_SCOPES, more: object = {}): Promise<string> {
    const token = randomUUID()
    const ends = { issuedMs: Date.now(), expiresMs: Date.now() + 60_000, state: 'ACTIVE' as const }
    const about = { user, tenant: TENANT, isApplication: false, scopes, consumerKey: client.consumerKey, ...ends }
    const id = randomUUID()
    await registry.tokens.add(token, { id, kind: 'access', revocationKey: id, family: id, ...about, ...more })
    return token
  }
  const close = async () => {
    await registry.close()
    rmSync(folder, { recursive: true })
  }
  return { services, registry, approvals, commands, fetch, tokenOf, reports, close }
}

const ALL_SCOPES = [
  ...['apim:app_manage', 'apim:subscribe', 'apim:api_key', 'apim:api_view', 'apim:api_publish', 'apim:admin'],
  ...['apim:subscription_view', 'apim:subscription_block', 'internal_user_mgt_list', 'internal_user_mgt_create'],
  ...['internal_user_mgt_update', 'internal_user_mgt_delete', 'internal_user_mgt_view'],
]
