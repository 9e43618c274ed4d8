/**
 * The members of the files of a project and the extensions of OpenAPI documents, as releases 4.x of the reference
 * platform export them, and our own. Tables only; known-members.ts checks them.
 */
import { FLOWS } from './api-definition.ts'
import type { Member, Members } from './known-members.ts'

/** The member is read, or describes the API. */
const KNOWN: Member = {}
const ACCESS: Member = { isAccess: true }

function of(members: Members): Member {
  return { members }
}

function accessOf(members: Members): Member {
  return { isAccess: true, members }
}

/** `harmless`: values that exports have where nothing is asked for, in lower case. */
function inert(hint: string, ...harmless: readonly string[]): Member {
  return { inert: { hint, harmless } }
}

function accessMapOf(members: Members): Member {
  return { isAccess: true, members, isMap: true }
}

/** One table entry for each name. */
function each(member: Member, ...names: readonly string[]): Members {
  return Object.fromEntries(names.map(name => [name, member]))
}

const NO_INTERCEPTORS = inert('attach the policy callInterceptorService in apiPolicies or operationPolicies')
const NO_LIMITS = inert('name a policy as x-throttling-tier instead', 'unlimited', 'unauthenticated', '-1')
const NO_CACHE = inert('write a sequence with a cache mediator')

const CORS_MEMBERS = [
  ...['corsConfigurationEnabled', 'accessControlAllowOrigins', 'accessControlAllowCredentials'],
  ...['accessControlAllowHeaders', 'accessControlAllowMethods', 'accessControlExposeHeaders', 'accessControlMaxAge'],
]
const CORS = accessMapOf(each(ACCESS, ...CORS_MEMBERS))

const CREDENTIALS: Member = of({
  ...each(KNOWN, 'enabled', 'type', 'username', 'password', 'grantType', 'tokenUrl', 'clientId', 'clientSecret'),
  ...each(KNOWN, 'customParameters', 'scopes', 'additionalProperties', 'uniqueIdentifier'),
  // The parameters of other types: the reader of the type warns.
  ...each(KNOWN, 'apiKeyIdentifier', 'apiKeyValue', 'apiKeyIdentifierType', 'accessKey', 'secretKey', 'region'),
  ...each(KNOWN, 'service', 'connectionTimeoutConfigType', 'proxyConfigType'),
  ...each(
    inert('token requests keep the limits of the gateway', '-1'),
    ...['connectionTimeoutDuration', 'connectionRequestTimeoutDuration', 'socketTimeoutDuration'],
  ),
  proxyConfigs: of({
    proxyEnabled: inert('token requests use no proxy'),
    ...each(KNOWN, 'proxyHost', 'proxyPort', 'proxyUsername', 'proxyPassword', 'proxyProtocol'),
    proxyPasswordAlias: KNOWN,
  }),
  proxyConfigProtocol: KNOWN,
})

const ENDPOINTS: Member = accessOf({
  ...each(KNOWN, 'url', 'endpoint_type', 'template_not_supported', 'weight', 'attributes'),
  config: of({
    proxy_protocol: KNOWN,
    ...each(KNOWN, 'actionSelect', 'actionDuration', 'retryTimeOut', 'retryDelay', 'retryErroCode'),
    ...each(KNOWN, 'suspendDuration', 'suspendMaxDuration', 'factor', 'suspendErrorCode'),
    ...each(inert('messages pass as they are', 'leave-as-is'), 'format', 'optimize'),
    health_check: of(each(KNOWN, 'path', 'interval', 'timeout', 'unhealthy_after', 'healthy_after')),
  }),
})

const ENDPOINT_CONFIG: Member = accessOf({
  ...each(ACCESS, 'endpoint_type', 'module', 'sequence'),
  ...each(KNOWN, 'settings', 'work'),
  ...each(ENDPOINTS, 'production_endpoints', 'sandbox_endpoints', 'production_failovers', 'sandbox_failovers'),
  ...each(KNOWN, 'failOver', 'sessionManagement', 'sessionTimeOut'),
  ...each(KNOWN, 'algorithm', 'algoCombo', 'algoClassName'),
  endpoint_security: of(each(CREDENTIALS, 'production', 'sandbox')),
  implementation_status: KNOWN,
  // Members of endpoints of Amazon Lambda, whose type is refused.
  ...each(KNOWN, 'access_method', 'assume_role', 'amznAccessKey', 'amznSecretKey', 'amznRegion', 'amznRoleArn'),
  ...each(KNOWN, 'amznRoleSessionName', 'amznRoleRegion'),
})

/** Uses of policies; a policy may decide who may call. */
const POLICY_USES: Member = accessOf(
  each(
    accessOf({
      ...each(ACCESS, 'policyName', 'parameters'),
      ...each(KNOWN, 'policyVersion', 'policyId', 'policyType', 'order'),
    }),
    ...FLOWS,
  ),
)

const OPERATIONS: Member = accessOf({
  ...each(ACCESS, 'target', 'verb', 'authType', 'scopes'),
  throttlingPolicy: KNOWN,
  ...each(KNOWN, 'id', 'usedProductIds', 'payloadSchema', 'description', 'summary'),
  ...each(KNOWN, 'amznResourceName', 'amznResourceTimeout', 'amznResourceContentEncode'),
  uriMapping: inert('the path of the request is passed on'),
  operationPolicies: POLICY_USES,
})

const SCOPES: Member = accessOf({
  scope: accessOf({
    ...each(ACCESS, 'name', 'bindings'),
    ...each(KNOWN, 'id', 'displayName', 'description', 'usageCount'),
  }),
  shared: KNOWN,
})

const DATA: Member = accessOf({
  ...each(ACCESS, 'name', 'context', 'version', 'lifeCycleStatus', 'transport', 'authorizationHeader'),
  ...each(ACCESS, 'securityScheme', 'gatewayEnvironments', 'labels', 'gatewayLabels', 'escapedSlashes'),
  corsConfiguration: CORS,
  endpointConfig: ENDPOINT_CONFIG,
  scopes: SCOPES,
  operations: OPERATIONS,
  ...each(KNOWN, 'isDefaultVersion', 'isUnversioned', 'provider', 'policies'),
  subtypeConfiguration: of(each(KNOWN, 'subtype', 'configuration', '_configuration')),
  // Descriptions, and settings of the publisher and the developer portal that no gateway reads.
  ...each(KNOWN, 'id', 'displayName', 'description', 'hasThumbnail', 'isRevision', 'revisionId', 'revisionedApiId'),
  ...each(KNOWN, 'tags', 'categories', 'additionalProperties', 'additionalPropertiesMap', 'businessInformation'),
  ...each(KNOWN, 'workflowStatus', 'createdTime', 'lastUpdatedTimestamp', 'lastUpdatedTime', 'serviceInfo', 'testKey'),
  ...each(KNOWN, 'cacheTimeout', 'audience', 'wsdlInfo', 'wsdlUrl', 'enableStore', 'organizationId', 'organization'),
  ...each(KNOWN, 'asyncTransportProtocols', 'egress', 'initiatedFromGateway', 'scopePrefix', 'visibleRoles'),
  ...each(KNOWN, 'visibleTenants', 'visibleOrganizations', 'accessControlRoles', 'subscriptionAvailableTenants'),
  ...each(
    KNOWN,
    'organizationPolicies',
    'primaryProductionEndpointId',
    'primarySandboxEndpointId',
    'destinationStatsEnabled',
  ),
  // Members that another gateway would act on.
  type: inert('its operations match as those of an HTTP API', 'http', 'ws', 'sse', 'soap', 'soaptorest', 'graphql'),
  graphqlIntrospection: KNOWN,
  responseCachingEnabled: NO_CACHE,
  apiThrottlingPolicy: KNOWN,
  maxTps: { isMap: true, members: each(KNOWN, 'production', 'sandbox', 'productionTimeUnit', 'sandboxTimeUnit') },
  maxBackendTps: inert('limits of language models are not supported yet', '-1'),
  enableSchemaValidation: KNOWN,
  threatProtectionPolicies: inert('attach jsonThreatProtector, xmlThreatProtector or regularExpressionThreatProtector'),
  apiPolicies: POLICY_USES,
  mediationPolicies: of(each(KNOWN, 'id', 'name', 'type', 'shared')),
  ...each(KNOWN, 'inSequence', 'outSequence', 'faultSequence'),
  apiKeyHeader: inert('clients send API keys in the header apikey', 'apikey'),
  keyManagers: inert('tokens of every issuer of the configuration are accepted', 'all'),
  audiences: inert('apim.jwt.issuer.audiences of the configuration is checked', 'all'),
  enableSubscriberVerification: inert('subscribers of webhooks are not supported yet'),
  websubSubscriptionConfiguration: of({
    enable: inert('webhooks are not supported yet'),
    ...each(KNOWN, 'secret', 'signingAlgorithm', 'signatureHeader'),
  }),
  wsUriMapping: inert('the path of the request is passed on'),
  visibility: inert('every account of the developer portal sees the API', 'public'),
  accessControl: inert('every publisher sees the API', 'none', 'all'),
  subscriptionAvailability: inert('accounts of every tenant may subscribe', 'current_tenant', 'all_tenants'),
  monetization: of({ enabled: inert('use of the API is not charged'), ...each(KNOWN, 'properties', 'subscriptionId') }),
  advertiseInfo: of({
    advertised: inert('the API is deployed all the same'),
    ...each(KNOWN, 'apiExternalProductionEndpoint', 'apiExternalSandboxEndpoint', 'originalDevPortalUrl', 'apiOwner'),
    vendor: KNOWN,
  }),
  endpointImplementationType: inert('requests go to the endpoints', 'endpoint'),
  gatewayType: inert('this gateway deploys the API', 'wso2/synapse', 'synapse', 'regular'),
  gatewayVendor: inert('this gateway deploys the API', 'wso2'),
  endpointSecurity: inert('write it as endpointConfig.endpoint_security.production'),
})

/** `api.yaml`. */
export const API_FILE: Members = { type: ACCESS, version: ACCESS, data: DATA }

/** `deployment_environments.yaml`. */
export const DEPLOYMENTS_FILE: Members = {
  ...each(ACCESS, 'type', 'version'),
  data: accessOf({ ...each(ACCESS, 'deploymentEnvironment', 'deploymentVhost'), displayOnDevportal: KNOWN }),
}

/** `client_certificates.yaml`. */
export const CLIENT_CERTIFICATES_FILE: Members = {
  ...each(ACCESS, 'type', 'version'),
  data: accessOf({
    ...each(ACCESS, 'alias', 'certificate'),
    tierName: KNOWN,
    keyType: inert('the certificate is accepted for both kinds of endpoints', 'production'),
    apiIdentifier: of(each(KNOWN, 'apiName', 'version', 'providerName', 'uuid', 'organization', 'id')),
  }),
}

const POLICY_ATTRIBUTES: Member = of({
  ...each(KNOWN, 'name', 'displayName', 'description', 'type', 'required', 'validationRegex', 'defaultValue'),
  allowedValues: KNOWN,
})

/** The specification of a policy of a project, within `data`. */
export const POLICY_FILE: Members = {
  ...each(KNOWN, 'category', 'name', 'version', 'displayName', 'description', 'applicableFlows', 'multipleAllowed'),
  ...each(KNOWN, 'supportedGateways', 'supportedApiTypes', 'id', 'md5', 'isAPISpecific', 'type'),
  policyAttributes: POLICY_ATTRIBUTES,
}

const NO_SECRETS: Member = { refused: 'secrets stay with the issuer of the tokens' }

/** `applications/*.yaml`. */
export const APPLICATION_FILE: Members = {
  name: ACCESS,
  ...each(KNOWN, 'owner', 'tenant', 'attributes', 'tier'),
  keys: accessOf({
    ...each(ACCESS, 'type', 'consumerKey', 'issuer'),
    ...each(NO_SECRETS, 'secret', 'consumerSecret', 'clientSecret'),
  }),
  subscriptions: accessOf({ ...each(ACCESS, 'api', 'status'), tier: KNOWN }),
}

// ---- OpenAPI documents ----------------------------------------------------------------------------------------------

const EXTENSION_ENDPOINTS: Member = accessOf({
  ...each(KNOWN, 'urls', 'type', 'securityConfig'),
  ...each(inert('the defaults of endpoints hold'), 'advanceEndpointConfig', 'advancedConfig'),
})
const SECURITY_TYPES: Members = {
  'security-types': ACCESS,
  optional: inert('leave out mutualssl, or name only mutualssl, in security-types'),
}
const EXTENSION_CORS = accessMapOf({
  ...each(ACCESS, ...CORS_MEMBERS, ...CORS_MEMBERS.map(dashed)),
})
const AT_THE_ROOT = inert('write it at the root of the document')

/** `accessControlAllowOrigins` as `access-control-allow-origins`. */
export function dashed(name: string): string {
  return name.replace(/[A-Z]/g, capital => `-${capital.toLowerCase()}`)
}

/** Extensions at the root of a document. */
export const DOCUMENT_EXTENSIONS: Members = {
  'x-wso2-basePath': ACCESS,
  ...each(EXTENSION_ENDPOINTS, 'x-wso2-production-endpoints', 'x-wso2-sandbox-endpoints'),
  'x-wso2-cors': EXTENSION_CORS,
  ...each(ACCESS, 'x-wso2-auth-header', 'x-wso2-disable-security', 'x-auth-type', 'x-wso2-transports'),
  'x-sluice-escaped-slashes': ACCESS,
  'x-wso2-application-security': accessMapOf(SECURITY_TYPES),
  'x-throttling-tier': KNOWN,
  ...each(NO_LIMITS, 'x-wso2-throttling-tier', 'x-throttling-bandwidth', 'x-wso2-throttling-limit'),
  'x-wso2-response-cache': of({ enabled: NO_CACHE, cacheTimeoutInSeconds: KNOWN }),
  'x-wso2-mutual-ssl': inert('name mutualssl in x-wso2-application-security'),
  ...each(NO_INTERCEPTORS, 'x-wso2-request-interceptor', 'x-wso2-response-interceptor'),
  ...each(NO_INTERCEPTORS, 'x-wso2-request-bundle', 'x-wso2-response-bundle', 'x-wso2-operation-policies'),
  'x-wso2-apikey-header': inert('clients send API keys in the header apikey', 'apikey'),
  'x-wso2-enable-backend-jwt': inert('set apim.jwt.enable of the configuration'),
  'x-scope': { isAccess: true, ...inert('write it at an operation or a path') },
  ...each(
    KNOWN,
    'x-wso2-owner',
    'x-wso2-api-id',
    'x-wso2-label',
    'x-wso2-tags',
    'x-wso2-api-type',
    'x-wso2-organization-id',
  ),
}

/** Extensions of paths and operations. */
export const OPERATION_EXTENSIONS: Members = {
  ...each(ACCESS, 'x-auth-type', 'x-wso2-disable-security', 'x-scope'),
  'x-throttling-tier': KNOWN,
  ...each(NO_LIMITS, 'x-wso2-throttling-tier', 'x-throttling-bandwidth', 'x-wso2-throttling-limit'),
  // Exports repeat the extension of the document at each operation.
  'x-wso2-application-security': of(SECURITY_TYPES),
  'x-wso2-response-cache': of({ enabled: NO_CACHE, cacheTimeoutInSeconds: KNOWN }),
  ...each(
    inert('every operation goes to the endpoints of the API'),
    'x-wso2-production-endpoints',
    'x-wso2-sandbox-endpoints',
  ),
  ...each(
    AT_THE_ROOT,
    'x-wso2-cors',
    'x-wso2-auth-header',
    'x-wso2-basePath',
    'x-wso2-transports',
    'x-sluice-escaped-slashes',
  ),
  'x-mediation-script': inert('write a sequence with a script mediator'),
  ...each(NO_INTERCEPTORS, 'x-wso2-request-interceptor', 'x-wso2-response-interceptor'),
  ...each(NO_INTERCEPTORS, 'x-wso2-request-bundle', 'x-wso2-response-bundle', 'x-wso2-operation-policies'),
  ...each(KNOWN, 'x-amzn-resource-name', 'x-amzn-resource-timeout', 'x-amzn-resource-content-encode'),
  'x-uri-mapping': inert('the path of the request is passed on'),
}

/** Extensions of an OAuth2 flow. */
export const FLOW_EXTENSIONS: Members = each(ACCESS, 'x-scopes-bindings')
