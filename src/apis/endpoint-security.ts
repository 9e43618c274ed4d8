/**
 * Credentials that the gateway sends to backends: `endpoint_security` of a project, `securityConfig` of the endpoint
 * extensions of a document, for each key type. A value may come from `$env{NAME}`, or from `$file{PATH}` relative to
 * the project. No diagnostic ever shows one of these values.
 */
import { isLoopbackHost } from '../http1/host-name.ts'
import { environmentValue, fileValue } from '../config/external-values.ts'
import { asText, referenceText, expandReferences, type Reference, UnresolvedReference } from '../config/references.ts'
import type { CredentialsByKeyType, EndpointCredentials } from './api-definition.ts'
import type { Path, YamlFile } from './yaml-file.ts'

/** User name and password share one header line, in base64. */
const CHARS_MAX = 1024
const PARAMETERS_MAX = 32
const HOW_TO_SET = 'write it here, or as $env{NAME} or $file{PATH}'
const IN_PROJECT = ['data', 'endpointConfig', 'endpoint_security']
/** Parameters of a token request that the gateway sets itself (RFC 6749 4.4.2). */
const RESERVED = ['grant_type', 'client_id', 'client_secret', 'client_assertion', 'client_assertion_type']

/** The project wins over the document. `folder`: base of relative `$file{}` paths. Errors go to the files. */
export function readEndpointSecurity(
  project: YamlFile | undefined,
  document: YamlFile | undefined,
  folder: string,
): CredentialsByKeyType {
  const credentialsOf = (keyType: 'production' | 'sandbox'): EndpointCredentials | null => {
    const inProject = [...IN_PROJECT, keyType]
    if (project?.has(inProject)) return new SecurityReader(project, inProject, folder).credentials()
    const inDocument = [`x-wso2-${keyType}-endpoints`, 'securityConfig']
    if (document?.has(inDocument)) return new SecurityReader(document, inDocument, folder).credentials()
    return null
  }
  return { production: credentialsOf('production'), sandbox: credentialsOf('sandbox') }
}

/** Reads the credentials of one key type. */
class SecurityReader {
  readonly #file: YamlFile
  readonly #at: Path
  readonly #folder: string

  constructor(file: YamlFile, at: Path, folder: string) {
    this.#file = file
    this.#at = at
    this.#folder = folder
  }

  credentials(): EndpointCredentials | null {
    if (!this.#file.flag([...this.#at, 'enabled'], true)) return null
    const type = this.#file.optional([...this.#at, 'type'])
    if (/^basic$/i.test(type)) return this.#basic()
    if (/^oauth(?:2)?$/i.test(type)) return this.#oauth2()
    // Older exports combine type "none" with enabled: true.
    if (type !== '' && !/^none$/i.test(type)) {
      this.#file.warn([...this.#at, 'type'], type, 'the backend gets no such credentials', 'write BASIC or OAUTH')
    }
    return null
  }

  #basic(): EndpointCredentials {
    const username = this.#text('username')
    // The user name ends at the first colon (RFC 7617 2).
    if (username.includes(':')) this.#error('username', 'must hold no ":" (RFC 7617 2)', 'use another account')
    return { kind: 'basic', username, password: this.#text('password') }
  }

  #oauth2(): EndpointCredentials {
    const grant = this.#file.optional([...this.#at, 'grantType'])
    if (grant !== '' && !/^client_credentials$/i.test(grant)) {
      this.#file.error([...this.#at, 'grantType'], grant, 'expected CLIENT_CREDENTIALS', 'other grants need a user')
    }
    const tokenUrl = this.#text('tokenUrl')
    if (tokenUrl !== '' && !isSafeTokenUrl(tokenUrl)) {
      const expected = 'must be https, or lead to this machine, and hold no credentials'
      this.#error('tokenUrl', expected, 'the gateway sends the client secret there')
    }
    return {
      kind: 'oauth2',
      tokenUrl,
      clientId: this.#text('clientId'),
      clientSecret: this.#text('clientSecret'),
      scopes: this.#file.texts([...this.#at, 'scopes']).flatMap(text => text.split(/[\s,]+/).filter(Boolean)),
      parameters: this.#parameters(),
    }
  }

  /** Exports write the parameters as a map, or as the JSON text of one. */
  #parameters(): Readonly<Record<string, string>> {
    const path = [...this.#at, 'customParameters']
    const written = this.#file.value(path)
    const given = typeof written === 'string' ? parseJson(written) : (written ?? {})
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      const expected = 'expected names with their values'
      this.#file.error(path, undefined, expected, 'for example customParameters: {resource: a}')
      return {}
    }
    const entries = Object.entries(given).filter(([name]) => !RESERVED.includes(name))
    if (entries.length > PARAMETERS_MAX || entries.some(([, value]) => typeof value !== 'string')) {
      this.#file.error(path, undefined, `expected at most ${PARAMETERS_MAX} texts`, 'write each value as one text')
      return {}
    }
    return Object.fromEntries(entries.map(([name, value]) => [name, this.#expanded(path, value as string)]))
  }

  #text(name: string): string {
    const path = [...this.#at, name]
    const text = this.#expanded(path, this.#file.optional(path))
    // Exports leave secrets out.
    if (text === '') this.#file.error(path, undefined, 'is missing, and the backend asks for it', HOW_TO_SET)
    else if (text.length > CHARS_MAX) this.#error(name, `is longer than ${CHARS_MAX} characters`, HOW_TO_SET)
    return text
  }

  #expanded(path: Path, written: string): string {
    try {
      const { value } = expandReferences(written, reference => this.#find(reference))
      return asText(value) ?? ''
    } catch (error) {
      if (!(error instanceof UnresolvedReference)) throw error
      this.#file.error(path, undefined, error.message, error.hint)
      // Not empty: a missing value would be a second error.
      return '-'
    }
  }

  #find(reference: Reference) {
    const { kind, name } = reference
    this.#file.hasExternalValues = true
    if (kind === 'env') return environmentValue(name)
    if (kind === 'file') return fileValue(name, this.#folder)
    throw new UnresolvedReference(`${referenceText(reference)} cannot be used in an API`, HOW_TO_SET)
  }

  /** Adds an error without the value. */
  #error(name: string, expected: string, hint: string): void {
    this.#file.error([...this.#at, name], undefined, expected, hint)
  }
}

/** Null for text that is no JSON. */
function parseJson(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Over TLS or to this machine, without credentials in the URL. */
export function isSafeTokenUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return false
  if (url.protocol === 'https:') return true
  return url.protocol === 'http:' && isLoopbackHost(url.hostname)
}
