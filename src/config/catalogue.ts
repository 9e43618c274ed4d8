/**
 * The catalogue: all sections in documented order, and the rules across sections. It is the only source of defaults,
 * types, validation, `explain` and the generated documents.
 */
import { consoleAccess, servletFilter, webAppAccess, webAppListener } from './catalogue/access-control.ts'
import { ai, synapseHandlers, topLevel } from './catalogue/handlers.ts'
import { governance, healthCheck, healthChecker, heartbeat } from './catalogue/health-checks.ts'
import { blockingHttp, blockingHttps, servlet } from './catalogue/inert-transports.ts'
import { accessLog, listener, logging, management } from './catalogue/management.ts'
import { customStore, internalStore, primaryStore, tlsStore, trustStore } from './catalogue/key-stores.ts'
import { mediation } from './catalogue/mediation.ts'
import {
  blockingCustomMessageBuilders,
  blockingCustomMessageFormatters,
  blockingMessageBuilders,
  blockingMessageFormatters,
  customMessageBuilders,
  customMessageFormatters,
  messageBuilders,
  messageFormatters,
} from './catalogue/message-builders.ts'
import { grantTypes, oauth } from './catalogue/oauth.ts'
import { passthruHttp } from './catalogue/passthru-http.ts'
import { passthruHttps } from './catalogue/passthru-https.ts'
import { proxyProfile, securedProxyProfile } from './catalogue/proxies.ts'
import { recorder } from './catalogue/recorder.ts'
import { analytics, analyticsGroup } from './catalogue/analytics.ts'
import {
  gatewayTokenCache,
  jwtClaimCache,
  keyManagerTokenCache,
  publisherRolesCache,
  recentApisCache,
  resourceCache,
  scopesCache,
  tagsCache,
} from './catalogue/caches.ts'
import { cors } from './catalogue/cors.ts'
import { lifecycle } from './catalogue/lifecycle.ts'
import { apimDatabase, encryption, sharedDatabase } from './catalogue/databases.ts'
import { environment, gatewayLabels, virtualHost } from './catalogue/environments.ts'
import { backendJwt, claimMapping, jwtIssuer } from './catalogue/jwt.ts'
import { httpClient, keyManager, oauthConfig } from './catalogue/key-manager.ts'
import { notification, tokenRevocation } from './catalogue/notifications.ts'
import { developerPortal, indexing, sdk } from './catalogue/portals.ts'
import { openTracer, tracing } from './catalogue/tracing.ts'
import { workflow } from './catalogue/workflow.ts'
import {
  blockingConditions,
  eventManagement,
  eventSync,
  OWN_SERVICES,
  throttling,
  throttlingGroup,
  throttlingRedis,
} from './catalogue/throttling.ts'
import { databaseConfiguration, server, superAdmin } from './catalogue/server.ts'
import { userStore, userStoreProperties } from './catalogue/user-store.ts'
import { ws, wss } from './catalogue/websocket.ts'
import { type Key, keyPath, type Rule, type Section, type Values } from './key.ts'

const ALL = [
  server,
  superAdmin,
  databaseConfiguration,
  apimDatabase,
  sharedDatabase,
  encryption,
  backendJwt,
  jwtIssuer,
  claimMapping,
  environment,
  virtualHost,
  gatewayLabels,
  gatewayTokenCache,
  resourceCache,
  keyManagerTokenCache,
  recentApisCache,
  scopesCache,
  publisherRolesCache,
  jwtClaimCache,
  tagsCache,
  analytics,
  analyticsGroup,
  keyManager,
  httpClient,
  oauthConfig,
  developerPortal,
  cors,
  lifecycle,
  throttling,
  throttlingGroup,
  throttlingRedis,
  blockingConditions,
  eventSync,
  eventManagement,
  workflow,
  sdk,
  openTracer,
  tracing,
  tokenRevocation,
  notification,
  indexing,
  primaryStore,
  tlsStore,
  internalStore,
  trustStore,
  passthruHttp,
  passthruHttps,
  proxyProfile,
  securedProxyProfile,
  ws,
  wss,
  blockingHttp,
  blockingHttps,
  servlet,
  listener,
  management,
  accessLog,
  logging,
  recorder,
  messageBuilders,
  blockingMessageBuilders,
  messageFormatters,
  blockingMessageFormatters,
  customMessageBuilders,
  blockingCustomMessageBuilders,
  customMessageFormatters,
  blockingCustomMessageFormatters,
  mediation,
  topLevel,
  synapseHandlers,
  governance,
  heartbeat,
  healthCheck,
  healthChecker,
  oauth,
  grantTypes,
  userStore,
  userStoreProperties,
  consoleAccess,
  webAppAccess,
  servletFilter,
  webAppListener,
  customStore,
  ai,
] as const

type Documented = (typeof ALL)[number]

/** Rows within a row, by the rest of their table's name. */
type InnerRows<N extends string> = {
  readonly [S in Documented as S['repeated'] extends true
    ? S['name'] extends `${N}.${infer Rest}`
      ? Rest
      : never
    : never]: readonly Values<S['keys']>[]
}

/**
 * One property per section, a list of rows for a repeated one; frozen plain data that can be sent to threads. Rows
 * within rows appear twice: in one list of all, and as a property of the row around them.
 */
export type Configuration = {
  readonly [S in Documented as S['name']]: S['repeated'] extends true
    ? readonly (Values<S['keys']> & InnerRows<S['name']>)[]
    : Values<S['keys']>
}

export type AnySection = Section<string, Readonly<Record<string, Key<unknown>>>>

export const SECTIONS: readonly AnySection[] = ALL as readonly unknown[] as readonly AnySection[]

/** A rule with whole paths as keys. */
interface CatalogueRule {
  readonly keys: readonly string[]
  /** The repeated table to each of whose rows the rule applies; '' for a rule about the whole configuration. */
  readonly repeats: string
  readonly must: string
  readonly severity: 'error' | 'warning'
  /** `row`: index of the row, for rules of repeated tables. */
  holds(configuration: Configuration, row: number): boolean
}

/** A listening port without the offset. */
interface Port {
  readonly path: string
  /** 0 for any free port, and for a listener that is off. */
  of(configuration: Configuration): number
}

type Transport = 'transport.passthru_http' | 'transport.passthru_https' | 'transport.ws' | 'transport.wss'

function portOf(section: Transport): Port {
  return {
    path: `${section}.listener.parameters.port`,
    of: it => (it[section]['listener.enable'] ? it[section]['listener.parameters.port'] : 0),
  }
}

const PORTS: readonly Port[] = [
  portOf('transport.passthru_http'),
  portOf('transport.passthru_https'),
  portOf('transport.ws'),
  portOf('transport.wss'),
  { path: 'management.port', of: it => it.management.port },
  { path: 'management.health_port', of: it => it.management.health_port },
]

/** The name of a key as rules of its own section show it. */
function withoutSection(path: string): string {
  return path.replace(/^transport\.\w+\./, '')
}

function portWithOffsetInRange({ path, of }: Port): CatalogueRule {
  return {
    keys: [path, 'server.offset'],
    repeats: '',
    must: `${withoutSection(path)} and server.offset must add up to 65535 at most`,
    severity: 'error',
    holds: it => of(it) === 0 || of(it) + it.server.offset <= 65_535,
  }
}

function portsDiffer(one: Port, other: Port): CatalogueRule {
  return {
    keys: [one.path, other.path],
    repeats: '',
    must: 'two listeners must not share a port',
    severity: 'error',
    holds: it => one.of(it) === 0 || one.of(it) !== other.of(it),
  }
}

/** Reports the second of two rows with the same name. */
function uniqueNames(table: 'apim.gateway.environment' | 'apim.jwt.issuer'): CatalogueRule {
  return {
    keys: [`${table}.name`],
    repeats: table,
    must: 'no two rows may have the same name',
    severity: 'error',
    holds: (it, row) => it[table].findIndex(({ name }) => name === it[table][row]!.name) === row,
  }
}

const ONE_TOKEN_CACHE: CatalogueRule = {
  keys: ['apim.cache.km_token.enable', 'apim.cache.gateway_token.enable'],
  repeats: '',
  must: 'only one of the token caches may be enabled: their entries expire at different times',
  severity: 'error',
  holds: it => !it['apim.cache.km_token'].enable || !it['apim.cache.gateway_token'].enable,
}

const DISTINCT_TOKEN_FIELDS: CatalogueRule = {
  keys: ['apim.jwt.header', 'apim.oauth_config.auth_header', 'apim.oauth_config.enable_outbound_auth_header'],
  repeats: '',
  must: "header must not equal auth_header where enable_outbound_auth_header forwards the client's field",
  severity: 'error',
  holds: it =>
    !it['apim.jwt'].enable ||
    !it['apim.oauth_config'].enable_outbound_auth_header ||
    it['apim.jwt'].header.toLowerCase() !== it['apim.oauth_config'].auth_header.toLowerCase(),
}

const TRAFFIC_MANAGER_URL: CatalogueRule = {
  keys: ['apim.throttling.url_group.service_url'],
  repeats: 'apim.throttling.url_group',
  must: 'service_url is required on a gateway-worker without a traffic manager, here or in [apim.throttling]',
  severity: 'error',
  holds: (it, row) =>
    it.server.server_role !== 'gateway-worker' || it['apim.throttling.url_group'][row]!.service_url !== OWN_SERVICES,
}

/** The platform requires the key wherever its section is used. A gateway that counts alone has no broker to name. */
const DECISION_BROKER: CatalogueRule = {
  keys: ['apim.throttling.throttle_decision_endpoints'],
  repeats: '',
  must: 'throttle_decision_endpoints is required where [[apim.throttling.url_group]] names traffic managers',
  severity: 'error',
  holds: ({ 'apim.throttling': throttling, 'apim.throttling.url_group': groups }) =>
    groups.length === 0 || !throttling.enable_decision_connection || throttling.throttle_decision_endpoints.length > 0,
}

/** Keys of the broker, which have no effect in further groups: one broker carries the decisions of all groups. */
const BROKER_KEYS = ['jms.username', 'jms.password', 'jms.start_delay', 'jms.destination'] as const
const ONE_BROKER: CatalogueRule = {
  keys: BROKER_KEYS.map(key => `apim.throttling.url_group.${key}`),
  repeats: 'apim.throttling.url_group',
  must: `${BROKER_KEYS.join(', ')} have no effect in further groups: those of the first group act`,
  severity: 'warning',
  holds: ({ 'apim.throttling.url_group': groups }, row) =>
    BROKER_KEYS.every(key => groups[row]![key] === groups[0]![key]),
}

const ANALYTICS_NODES: CatalogueRule = {
  keys: ['apim.analytics.enable'],
  repeats: '',
  must: 'a row of [[apim.analytics.url_group]] is required where analytics is enabled with the default publisher',
  severity: 'error',
  holds: ({ 'apim.analytics': analytics, 'apim.analytics.url_group': groups }) =>
    !analytics.enable || analytics.event_publisher_type === 'custom' || groups.length > 0,
}

const CROSS_SECTION_RULES: readonly CatalogueRule[] = [
  ...PORTS.map(portWithOffsetInRange),
  ...PORTS.flatMap((one, index) => PORTS.slice(0, index).map(other => portsDiffer(one, other))),
  uniqueNames('apim.gateway.environment'),
  uniqueNames('apim.jwt.issuer'),
  ONE_TOKEN_CACHE,
  DISTINCT_TOKEN_FIELDS,
  TRAFFIC_MANAGER_URL,
  DECISION_BROKER,
  ONE_BROKER,
  ANALYTICS_NODES,
]

type AnyValues = Readonly<Record<string, unknown>>

function ofSection({ name, repeated }: AnySection, rule: Rule<AnyValues>): CatalogueRule {
  return {
    keys: rule.keys.map(key => keyPath(name, key)),
    repeats: repeated ? name : '',
    must: rule.must,
    severity: rule.severity,
    holds: (configuration, row) => {
      const values = configuration[name as keyof Configuration] as AnyValues | readonly AnyValues[]
      return rule.holds(Array.isArray(values) ? values[row] : values)
    },
  }
}

export const RULES: readonly CatalogueRule[] = [
  ...SECTIONS.flatMap(section => section.rules.map(rule => ofSection(section, rule))),
  ...CROSS_SECTION_RULES,
]

export interface CatalogueKey {
  readonly section: string
  readonly key: string
  /** `section.key`, as `--set`, `explain` and references spell it. */
  readonly path: string
  readonly definition: Key<unknown>
}

/** Every key in documented order; those of repeated tables once, without a place. */
export function allKeys(): readonly CatalogueKey[] {
  // Computed once, because every unknown key in a file asks for it.
  everyKey ??= SECTIONS.flatMap(({ name, keys }) =>
    Object.entries(keys).map(([key, definition]) => ({ section: name, key, path: keyPath(name, key), definition })),
  )
  return everyKey
}

let everyKey: readonly CatalogueKey[] | undefined
