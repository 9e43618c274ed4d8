/** The capability statement (R4, capabilitystatement.html), made from the tables that the API itself runs by. */
import type { JsonObject } from './json-text.ts'
import { JSON_TYPES } from './media-types.ts'
import { RESOURCE_TYPE } from './interaction.ts'
import { SEARCH_PARAMETERS, type SearchParameter } from './search-parameters.ts'
import { REVERSE_INCLUDES } from './search-results.ts'

const RELEASE = '4.0.1'
const DEFINITIONS = 'http://hl7.org/fhir'
/** Interactions of the type, with the scope letters that each needs. */
const INTERACTIONS: readonly (readonly [code: string, documentation: string])[] = [
  ['read', 'r'],
  ['vread', 'r'],
  ['update', 'u; creating a resource needs c as well'],
  ['patch', 'u; JSON Patch and FHIRPath Patch'],
  ['delete', 'd'],
  ['history-instance', 'r'],
  ['history-type', 's'],
  ['create', 'c'],
  ['search-type', 's; GET, and POST on _search'],
]
const PATCH_FORMATS = ['application/json-patch+json']
const INCLUDES = ['*', `${RESOURCE_TYPE}:*`]
const SMART_SCOPES = ['patient', 'user', 'system'].map(prefix => `${prefix}/${RESOURCE_TYPE}.cruds`)

/** Where clients of SMART find the token endpoint in the statement (SMART App Launch STU2.2, conformance). */
const OAUTH_URIS = 'http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris'

interface StatementFacts {
  /** URL of the API. */
  readonly base: string
  /** When this thread opened the API: the statement changes with the program alone. */
  readonly date: string
  readonly tokenUrl: string
}

export function capabilityStatement({ base, date, tokenUrl }: StatementFacts): JsonObject {
  const isSecured = base.startsWith('https:')
  return {
    resourceType: 'CapabilityStatement',
    status: 'active',
    date,
    kind: 'instance',
    software: { name: 'Sluice' },
    implementation: { description: 'Healthcare services', url: base },
    fhirVersion: RELEASE,
    format: JSON_TYPES,
    patchFormat: [...PATCH_FORMATS, ...JSON_TYPES.slice(0, 2)],
    rest: [
      {
        mode: 'server',
        security: {
          extension: [{ url: OAUTH_URIS, extension: [{ url: 'token', valueUri: tokenUrl }] }],
          cors: true,
          service: [
            {
              coding: [
                { system: 'http://terminology.hl7.org/CodeSystem/restful-security-service', code: 'SMART-on-FHIR' },
              ],
            },
          ],
          description: `OAuth 2.0 bearer tokens${isSecured ? '' : '; use https'}. Scopes: ${SMART_SCOPES.join(', ')}.`,
        },
        resource: [resourceStatement()],
        interaction: [{ code: 'transaction' }, { code: 'batch' }],
      },
    ],
  }
}

function resourceStatement(): JsonObject {
  const parameters = [...SEARCH_PARAMETERS.values()]
  const references = parameters.filter(({ type }) => type === 'reference')
  return {
    type: RESOURCE_TYPE,
    profile: `${DEFINITIONS}/StructureDefinition/${RESOURCE_TYPE}`,
    interaction: INTERACTIONS.map(([code, needed]) => ({ code, documentation: `Scope letters: ${needed}` })),
    versioning: 'versioned-update',
    readHistory: true,
    updateCreate: true,
    conditionalCreate: true,
    conditionalRead: 'full-support',
    conditionalUpdate: true,
    conditionalDelete: 'single',
    searchInclude: [...INCLUDES, ...references.map(({ name }) => `${RESOURCE_TYPE}:${name}`)],
    searchRevInclude: REVERSE_INCLUDES,
    searchParam: parameters.map(parameterStatement),
  }
}

function parameterStatement({ name, type }: SearchParameter): JsonObject {
  const owner = name.startsWith('_') ? 'Resource' : RESOURCE_TYPE
  const id = `${owner}-${name.replace(/^_/, '')}`
  return { name, definition: `${DEFINITIONS}/SearchParameter/${id}`, type }
}

/** The configuration for SMART clients (SMART App Launch STU2.2). `tokenUrl`: of the token endpoint. */
export function smartConfiguration(tokenUrl: string): JsonObject {
  return {
    token_endpoint: tokenUrl,
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    grant_types_supported: ['client_credentials'],
    scopes_supported: SMART_SCOPES,
    code_challenge_methods_supported: ['S256'],
    // Scopes with a query (`permission-v2`) are refused (D322).
    capabilities: ['permission-v1', 'permission-user', 'client-confidential-symmetric'],
  }
}
