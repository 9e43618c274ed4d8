/** Reads JSON bodies of requests. */
import type { MountedRequest } from '../interface.ts'
import { Refused } from './refusals.ts'

const DECODER = new TextDecoder('utf-8', { fatal: true })

/** Rejects with Refused, and BodyTooLong beyond `most` bytes. */
export async function jsonOf(request: MountedRequest, most: number): Promise<unknown> {
  const [media = ''] = (request.field('content-type') ?? '').split(';')
  if (media.trim().toLowerCase() !== 'application/json')
    throw new Refused('media-type', 'Content-Type is not application/json')
  const bytes = await request.body.bytes(most)
  try {
    return JSON.parse(DECODER.decode(bytes))
  } catch {
    throw new Refused('invalid', 'the body is no JSON text in UTF-8')
  }
}
