/** JSON in answers of others, read strictly: what parsers disagree about is no answer. */
import { InquiryFailed } from '../identity/identity-state.ts'
import { type JsonObject, strictObject } from '../structure/strict-json.ts'
import type { RemoteAnswer } from './http-client.ts'

/** `whom`: for messages. Throws InquiryFailed for another status than 200, another media type, or no object. */
export function jsonIn({ status, mediaType, body }: RemoteAnswer, whom: string): JsonObject {
  if (status !== 200) throw new InquiryFailed(`${whom} answers with status ${status}`)
  if (mediaType !== 'application/json' && !/^application\/[\w.-]+\+json$/.test(mediaType)) {
    throw new InquiryFailed(`${whom} answers with ${mediaType === '' ? 'no content type' : mediaType.slice(0, 64)}`)
  }
  const value = strictObject(body)
  if (typeof value === 'string') throw new InquiryFailed(`${whom} answers with what is ${value}`)
  return value
}
