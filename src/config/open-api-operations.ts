/** The operations of an OpenAPI document, with what its extensions say of them. */
import type { ResourceDefinition } from './api-definition.ts'
import { authTypeIn, DEFAULT_TIER, Operations } from './api-operations.ts'
import { isObject, type OpenApiDocument } from './open-api-document.ts'
import type { Path } from './yaml-file.ts'

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']
const SECURITY_OFF = 'x-wso2-disable-security'
/** Of a path or an operation. */
const NOT_ACTED_ON = ['servers', 'x-wso2-production-endpoints', 'x-wso2-sandbox-endpoints']

/** Of one that has nothing else to say which requests are let through: without any, all would be. */
export function requiredOperations(document: OpenApiDocument): Operations['all'] {
  const { file } = document
  const before = file.faults.length
  const { all } = documentOperations(document)
  if (all.length === 0 && file.faults.length === before) {
    file.object(['paths'], undefined, 'there is no operation in it', 'add one; /* is every path')
  }
  return all
}

/** Whether they are the same, letter by letter. */
export function hasSameOperations({ root: { paths } }: OpenApiDocument, { all }: Operations): boolean {
  if (!isObject(paths)) return false
  let left = all.length
  for (const { template, verb } of all) {
    const item = Object.hasOwn(paths, template) ? paths[template] : undefined
    if (!isObject(item) || !isObject(item[verb.toLowerCase()])) return false
  }
  for (const item of Object.values(paths)) for (const method of METHODS) if (isObject(item) && method in item) left--
  return left === 0
}

export function documentOperations(document: OpenApiDocument): Operations {
  const { file, root } = document
  const operations = new Operations(file)
  const oauth = oauthSchemes(document)
  const paths = isObject(root.paths) ? Object.keys(root.paths) : []
  for (const template of paths) {
    const item = template.startsWith('x-') ? undefined : document.objectAt(['paths', template])
    if (item === undefined) continue
    tellWhatIsNotBuilt(document, item.path)
    for (const method of METHODS) {
      if (operations.isFull) return operations
      if (!isObject(item.value[method])) continue
      const at = [...item.path, method]
      tellWhatIsNotBuilt(document, at)
      // Faults name the path, also where it refers to what stands elsewhere.
      const places = { template: ['paths', template], verb: ['paths', template, method] }
      operations.add({ template, verb: method, ...accessOf(document, item.path, at, oauth) }, places)
    }
  }
  return operations
}

function tellWhatIsNotBuilt({ file }: OpenApiDocument, at: Path): void {
  for (const name of NOT_ACTED_ON) {
    if (!file.has([...at, name])) continue
    const remedy = 'every operation goes to the endpoints of the API'
    file.warn([...at, name], undefined, 'is accepted and not acted on', remedy)
  }
}

type Access = Pick<ResourceDefinition, 'authType' | 'tier' | 'scopes'>

/**
 * `item`: the path, `at`: the operation. What the operation says goes before what its path says, and that before what
 * the document says. Of the two words about security the nearer one holds, of two in one place the stricter.
 */
function accessOf(document: OpenApiDocument, item: Path, at: Path, oauth: ReadonlySet<string>): Access {
  const { file } = document
  const placeOf = (name: string, ...around: readonly Path[]): Path => {
    return [at, ...around].map(place => [...place, name]).find(path => file.has(path)) ?? [...at, name]
  }
  const off = placeOf(SECURITY_OFF, item, [])
  const type = placeOf('x-auth-type', item, [])
  const isOpen = file.flag(off, false) && (off.length > type.length || !file.has(type))
  const authType = isOpen ? 'None' : authTypeIn(file, type)
  const tier = file.optional(placeOf('x-throttling-tier', item, [])) || DEFAULT_TIER
  const scope = placeOf('x-scope', item)
  return { authType, tier, scopes: file.has(scope) ? scopesIn(file.texts(scope)) : requiredScopes(document, at, oauth) }
}

function scopesIn(texts: readonly string[]): readonly string[] {
  return texts.flatMap(text => text.split(/[\s,]+/)).filter(scope => scope !== '')
}

/** Of OAuth2 schemes; those of the document where the operation says nothing. */
function requiredScopes({ file }: OpenApiDocument, at: Path, oauth: ReadonlySet<string>): readonly string[] {
  const path = file.has([...at, 'security']) ? [...at, 'security'] : ['security']
  const length = file.lengthOf(path) ?? 0
  const scopes = new Set<string>()
  for (let item = 0; item < length; item++) {
    for (const scheme of oauth) for (const scope of file.texts([...path, item, scheme])) scopes.add(scope)
  }
  return [...scopes]
}

function oauthSchemes(document: OpenApiDocument): ReadonlySet<string> {
  const at = document.version === '2.0' ? ['securityDefinitions'] : ['components', 'securitySchemes']
  const names = Object.keys(document.objectAt(at)?.value ?? {})
  return new Set(names.filter(name => document.objectAt([...at, name])?.value.type === 'oauth2'))
}
