/** The management room over a registry of its own, with APIs that a test names, and tokens that nobody signs. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NOTHING_DECLARED } from '../../src/identity/declared-applications.ts'
import { management } from '../../src/management/apps.ts'
import type { ApiKeyTerms, ManagedApi, ManagementRoom } from '../../src/management/room.ts'
import { openRegistry } from '../../src/registry/open.ts'
import { loadConfiguration } from '../harness/configuration.ts'

const ISSUER = 'https://localhost:9443/oauth2/token'
const TENANT = 'carbon.super'

function apiCalled(name: string, more: Partial<ManagedApi> = {}): ManagedApi {
  return {
    ...{ name, version: '1.0.0', context: `/${name}/1.0.0`, provider: 'admin', state: 'PUBLISHED', since: '' },
    ...{ actions: ['Block', 'Deprecate'], tiers: [], transports: ['http', 'https'], isDefaultVersion: false },
    operations: [],
    ...more,
  }
}

/** An answer: whichever members a test looks at, of whichever type it expects there. */
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

interface Asked {
  readonly body?: unknown
  /** '' for none. */
  readonly authorization?: string
  readonly headers?: Readonly<Record<string, string>>
}

function unsignedTokens(): ManagementRoom['tokens'] {
  const keys = new Map<string, { jti: string; applicationId: string; expiresMs: number }>()
  return {
    issue: async (client, scopes) => ({ token: `token of ${client.consumerKey}`, scopes, validityS: 3600 }),
    issueApiKey: async ({ application, validityS }: ApiKeyTerms) => {
      const expiresMs = Date.now() + (validityS === -1 ? 9e9 : validityS * 1000)
      const key = `key ${keys.size}`
      keys.set(key, { jti: randomUUID(), applicationId: application.id, expiresMs })
      return { key, expiresMs }
    },
    readApiKey: async key => keys.get(key) ?? null,
    grants: ['client_credentials', 'refresh_token', 'authorization_code'],
    issuer: ISSUER,
  }
}

export async function openRoom() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-management-'))
  writeFileSync(join(folder, 'deployment.toml'), '[super_admin]\nusername = "admin"\npassword = "an-admin-password"\n')
  const { configuration } = loadConfiguration(folder, [], folder)
  const registry = await openRegistry({ configuration, dataDir: folder, issuer: ISSUER })
  const { client } = await registry.clients.create({
    ...{ name: 'operator', applicationId: null, keyType: 'PRODUCTION', owner: 'admin', tenant: TENANT },
    ...{ grants: ['password'], redirectUris: [], isPublic: false, tokenType: 'JWT', validityS: 0 },
  })
  const apis = [apiCalled('Orders', { tiers: ['Gold', 'Silver'] }), apiCalled('Drafts', { state: 'CREATED' })]
  const reports: string[] = []
  const room: ManagementRoom = {
    registry,
    apis: {
      list: async () => apis,
      change: async ({ name, action }) => {
        const at = apis.findIndex(api => `${api.name}:${api.version}` === name)
        if (action !== 'Block') throw new Error('it cannot become that')
        apis[at] = { ...apis[at]!, state: 'BLOCKED' }
        return 'BLOCKED'
      },
    },
    tokens: unsignedTokens(),
    declared: {
      ...NOTHING_DECLARED,
      applications: [
        { id: 'file', name: 'Declared', owner: 'admin', tenant: TENANT, tier: 'Unlimited', attributes: {} },
      ],
      keys: [{ issuer: ISSUER, consumerKey: 'declared-key', applicationId: 'file', keyType: 'PRODUCTION' }],
    },
    adminName: 'admin',
    origin: 'https://localhost:9443',
    report: (_level, event, fields) => void reports.push(`${event} ${JSON.stringify(fields)}`),
    now: Date.now,
  }
  const { apps, commands } = management(() => room)
  const fetch = async (method: string, path: string, { body, authorization, headers = {} }: Asked = {}) => {
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
  /** Of all scopes unless they are named. */
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
  return { room, registry, commands, fetch, tokenOf, reports, close }
}

const ALL_SCOPES = [
  ...['apim:app_manage', 'apim:subscribe', 'apim:api_key', 'apim:api_view', 'apim:api_publish', 'apim:admin'],
  ...['apim:subscription_view', 'apim:subscription_block', 'internal_user_mgt_list', 'internal_user_mgt_create'],
  ...['internal_user_mgt_update', 'internal_user_mgt_delete', 'internal_user_mgt_view'],
]
