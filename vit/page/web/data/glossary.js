// What the words mean: a sentence, the paper's equation, and the line of vit/model.py where there is one.

/** @typedef {{ text: string, markup?: string, code?: string }} Term */

/** @type {Record<string, Term>} */
export const GLOSSARY = {
  photo: {
    text: "The model sees a square of a fixed size: the photo is made smaller, and what sticks out is cut off.",
  },
  patch: {
    text: "A small square of the photo; each becomes one token, a list of numbers that the layers work on.",
    markup: `<math display="block"><mi>x</mi><mo>→</mo><mo>[</mo><msubsup><mi>x</mi><mi>p</mi><mn>1</mn></msubsup><mi>E</mi><mo>;</mo><mo>…</mo><mo>;</mo><msubsup><mi>x</mi><mi>p</mi><mi>N</mi></msubsup><mi>E</mi><mo>]</mo></math>`,
    code: "patches = self.projection(images)  # B, D, R, C",
  },
  "position embedding": {
    text: "Learnt numbers added to each token, without which the model would not know where a patch was.",
    markup: `<math display="block"><msub><mi>z</mi><mn>0</mn></msub><mo>=</mo><mo>[</mo><msub><mi>x</mi><mtext>class</mtext></msub><mo>;</mo><msubsup><mi>x</mi><mi>p</mi><mn>1</mn></msubsup><mi>E</mi><mo>;</mo><mo>…</mo><mo>;</mo><msubsup><mi>x</mi><mi>p</mi><mi>N</mi></msubsup><mi>E</mi><mo>]</mo><mo>+</mo><msub><mi>E</mi><mtext>pos</mtext></msub><mspace width="2em"></mspace><mtext>(Eq. 1)</mtext></math>`,
    code: "z = [self.patch_embedding(images) + patches]  # B, N, D",
  },
  attention: {
    text: "Each token asks all tokens, and takes from each in proportion to how well it answers: these shares are the map.",
    markup: `<math display="block"><msub><mi>z</mi><mi>ℓ</mi></msub><mo>′</mo><mo>=</mo><mtext>MSA</mtext><mo>(</mo><mtext>LN</mtext><mo>(</mo><msub><mi>z</mi><mrow><mi>ℓ</mi><mo>−</mo><mn>1</mn></mrow></msub><mo>)</mo><mo>)</mo><mo>+</mo><msub><mi>z</mi><mrow><mi>ℓ</mi><mo>−</mo><mn>1</mn></mrow></msub><mspace width="2em"></mspace><mtext>(Eq. 2)</mtext></math>`,
    code: "z = z + self.skip(self.attention_scale(msa))  # Eq. 2",
  },
  head: {
    text: "A layer looks in several ways at once, each with questions of its own: these are its heads.",
    markup: `<math display="block"><mi>A</mi><mo>=</mo><mtext>softmax</mtext><mo>(</mo><mi>q</mi><msup><mi>k</mi><mi>⊤</mi></msup><mo>/</mo><msqrt><msub><mi>D</mi><mi>h</mi></msub></msqrt><mo>)</mo><mspace width="2em"></mspace><mtext>(Eq. 6)</mtext></math>`,
    code: "attention = (q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1)  # B, H, T, T",
  },
  MLP: {
    text: "After it has looked around, each token is worked on alone, by two layers of neurons.",
    markup: `<math display="block"><msub><mi>z</mi><mi>ℓ</mi></msub><mo>=</mo><mtext>MLP</mtext><mo>(</mo><mtext>LN</mtext><mo>(</mo><msub><mi>z</mi><mi>ℓ</mi></msub><mo>′</mo><mo>)</mo><mo>)</mo><mo>+</mo><msub><mi>z</mi><mi>ℓ</mi></msub><mo>′</mo><mspace width="2em"></mspace><mtext>(Eq. 3)</mtext></math>`,
    code: "z = z + self.skip(self.mlp_scale(self.mlp(self.mlp_norm(z))))  # Eq. 3",
  },
  "class token": {
    text: "A token that is no patch: it gathers what it needs from the others, and the answer is read from it alone.",
    markup: `<math display="block"><mi>y</mi><mo>=</mo><mtext>LN</mtext><mo>(</mo><msubsup><mi>z</mi><mi>L</mi><mn>0</mn></msubsup><mo>)</mo><mspace width="2em"></mspace><mtext>(Eq. 4)</mtext></math>`,
    code: "return self.norm(self._select(z))",
  },
  reading: {
    text: "This model has no class token: the answer is read from the mean of all patches.",
    code: "return z[:, self.config.prefix_tokens :].mean(dim=1)",
  },
  softmax: {
    text: "The classifier gives each class a number; softmax makes of them shares that sum to 100 %.",
    markup: `<math display="block"><msub><mi>p</mi><mi>c</mi></msub><mo>=</mo><mfrac><msup><mi>e</mi><msub><mi>y</mi><mi>c</mi></msub></msup><mrow><munder><mo>∑</mo><mi>k</mi></munder><msup><mi>e</mi><msub><mi>y</mi><mi>k</mi></msub></msup></mrow></mfrac></math>`,
  },
  "logit lens": {
    text: "What the classifier would say if this layer were the last: the final norm and head, applied early. From 20 % on it counts as an idea, below as unclear.",
    markup: `<math display="block"><msub><mi>y</mi><mi>ℓ</mi></msub><mo>=</mo><mtext>LN</mtext><mo>(</mo><msubsup><mi>z</mi><mi>ℓ</mi><mn>0</mn></msubsup><mo>)</mo><mspace width="1em"></mspace><mtext>(Eq. 4, early)</mtext></math>`,
  },
  rollout: {
    text: "Attention followed through all layers down to the photo, half of each token being what it was before.",
    markup: `<math display="block"><mi>R</mi><mo>=</mo><munderover><mo>∏</mo><mrow><mi>ℓ</mi><mo>=</mo><mn>1</mn></mrow><mi>L</mi></munderover><mfrac><mrow><msub><mi>A</mi><mi>ℓ</mi></msub><mo>+</mo><mi>I</mi></mrow><mn>2</mn></mfrac></math>`,
  },
  relevance: {
    text: "What speaks for a class: attention weighted by how much the class’s number would change with it.",
    markup: `<math display="block"><mi>R</mi><mo>←</mo><mi>R</mi><mo>+</mo><msub><mi>𝔼</mi><mi>h</mi></msub><mo>(</mo><mo>(</mo><mo>∇</mo><mi>A</mi><mo>⊙</mo><mi>A</mi><msup><mo>)</mo><mo>+</mo></msup><mo>)</mo><mi>R</mi></math>`,
  },
  "gradient × attention": {
    text: "The looks of one layer, each weighted by how much the class’s number would change with it.",
    markup: `<math display="block"><msub><mi>𝔼</mi><mi>h</mi></msub><mo>(</mo><mo>(</mo><mo>∇</mo><mi>A</mi><mo>⊙</mo><mi>A</mi><msup><mo>)</mo><mo>+</mo></msup><mo>)</mo></math>`,
  },
  "Grad-CAM": {
    text: "Patches whose numbers, before the last layer, point the way that makes the class more likely.",
    markup: `<math display="block"><msup><mrow><mo>(</mo><munder><mo>∑</mo><mi>d</mi></munder><msub><mi>α</mi><mi>d</mi></msub><msub><mi>z</mi><mrow><mi>p</mi><mi>d</mi></mrow></msub><mo>)</mo></mrow><mo>+</mo></msup></math>`,
  },
  register: {
    text: "A token that is no patch and no answer: the model keeps its notes there, and not in patches (Darcet et al., 2024).",
    code: "z.insert(0, self.register_tokens.expand(B, -1, -1))",
  },
  sink: {
    text: "A patch of little content that the model uses as scratch paper: it draws looks, but says nothing of the photo. Registers, tokens without a patch, take that work away (Darcet et al., 2024).",
  },
};
