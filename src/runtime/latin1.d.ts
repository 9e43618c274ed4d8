/** Methods of Buffer that Node does not document: fast forms of `toString('latin1')` and `write(…, 'latin1')`. */
interface Buffer {
  latin1Slice(start: number, end: number): string
  latin1Write(text: string, offset: number): number
}
