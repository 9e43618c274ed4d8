/** What an API says of CORS beside what `[apim.cors]` says in the place of what it leaves out. */
import { isEverybodys } from './any-origin.ts'
import type { ApiDefinition } from './api-definition.ts'
import type { Configuration } from './catalogue.ts'
import type { Fault } from './fault.ts'

/**
 * Why an API grants no credentials although they are to be granted: of the two that decide it the one is its own, the
 * other that of all. Where both stand in one file, that one is told when it is read.
 */
export function withheldCredentials(
  { name, version, cors }: Pick<ApiDefinition, 'name' | 'version' | 'cors'>,
  configuration: Configuration,
): Fault | undefined {
  if (cors === null || !cors.enabled) return undefined
  const all = configuration['apim.cors']
  const { origins, credentials } = cors
  if ((origins === undefined) === (credentials === undefined)) return undefined
  const open = (credentials ?? all.allow_credentials) && (origins ?? all.allow_origins).find(isEverybodys)
  if (typeof open !== 'string') return undefined
  const [ofIt, ofAll] = origins === undefined ? ['credentials', 'origins'] : ['origins', 'credentials']
  const expected = `nobody gets credentials where the origin is "${open}": its CORS leaves out ${ofAll}`
  const remedy = `say ${ofAll} there beside ${ofIt}`
  return {
    where: `API ${name} ${version}`,
    key: '',
    given: '',
    expected: `${expected}, so that those of [apim.cors] count`,
    remedy,
  }
}
