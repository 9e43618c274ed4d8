/** Why a gateway serves no request at all, and what to do about it. */
import { failuresText } from './system.ts'

/** The most frequent failure, and what to do about it. */
const REMEDIES: readonly (readonly [failure: RegExp, remedy: string])[] = [
  [/^401/, `give a token: --header 'Authorization: Bearer TOKEN'`],
  [/^403/, 'the token, or the client, may not use this API'],
  [/^404/, 'no API of this home serves this path, or its backend does not'],
  [/^405/, 'give the method with -X'],
  [/^429/, 'a quota is used up: throttling would be measured, not sizes'],
  [/^3/, 'the backend redirects: give the path that it leads to'],
  [/^5\d\d \(/, 'the backend cannot be reached, or fails: sluice why explains the code'],
  [/^5/, 'the backend fails'],
  [/^no response/, 'the backend is silent, or slower than --seconds'],
]

/** `failures`: kind -> count. */
export function refusalText(failures: Readonly<Record<string, number>>): string {
  const text = failuresText(failures)
  if (text === '') return 'no request has succeeded, and none has failed: give more --seconds'
  const remedy = REMEDIES.find(([failure]) => failure.test(text))?.[1] ?? 'try the path with sluice walk'
  return `no request has succeeded (${text}): ${remedy}`
}
